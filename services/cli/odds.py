"""`fivedraw odds HAND --keep CARDS`: what a draw can become, exactly, and what the old handbook says."""

from __future__ import annotations

import click

from services.rules.cards import format_cards, parse_cards
from services.rules.odds import DrawOdds, draw_odds, handbook, odds_against, two_pair_split

ACE = 12


def odds_lines(odds: DrawOdds) -> list[str]:
    """A table of the outcomes: exact count, n to 1 against, and the handbook's figure where it has one."""
    figures = handbook(odds.hand, odds.keep)
    counts = dict(odds.counts)
    if "two_pair_with_aces" in figures and "two_pair" in counts:
        counts["two_pair_with_aces"], counts["two_pair_without_aces"] = two_pair_split(odds.hand, odds.keep, ACE)
    lines = [
        f"keep {format_cards(odds.keep) or 'nothing'}, draw {odds.draw}: {odds.total} draws",
        f"{'':24}{'exact':>9} {'against':>14}  handbook",
    ]
    for name, count in counts.items():
        against = f"{odds_against(count, odds.total):.1f} to 1"
        says = f"{figures[name]} to 1" if name in figures else ""
        lines.append(f"{name.replace('_', ' '):24}{count:>9} {against:>14}  {says}".rstrip())
    return lines


@click.command("odds")
@click.argument("hand", nargs=-1, required=True)
@click.option("--keep", default="", help='The cards to keep, as in "9c 9d" or 9c9d; none to draw five.')
def odds_command(hand: tuple[str, ...], keep: str) -> None:
    """Exact odds for the five cards HAND, as in "9c 9d 6h 4s 2c" or 9c9d6h4s2c."""
    try:
        odds = draw_odds(parse_cards(" ".join(hand)), parse_cards(keep))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for line in odds_lines(odds):
        click.echo(line)


if __name__ == "__main__":
    odds_command()
