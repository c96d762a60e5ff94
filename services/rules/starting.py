"""How a hand starts: who is dealt in, in which order, with what (RULES 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from services.rules.options import MAX_AMOUNT
from services.rules.rulebook import Rulebook
from services.rules.state import HandState


def start_hand(  # noqa: PLR0917 - what a hand starts from, in the order it is said
    rulebook: Rulebook,
    stacks: Mapping[int, int],
    button: int,
    carry: int = 0,
    posts: Mapping[int, int] | None = None,
    dead_posts: Mapping[int, int] | None = None,
    auto_muck: Mapping[int, bool] | Collection[int] | None = None,
) -> HandState:
    """A hand that waits for `Begin`.

    `stacks` are the seats dealt in and their chips; `button` is the button's seat; `carry` the chips that earlier
    hands left. `posts` are newcomers' live posts and `dead_posts` dead ones, seat -> chips. `auto_muck` says which
    seats muck a lost hand (all, where not said): seat -> choice, or the seats that do. Raises ValueError for a hand
    that could not be played.
    """
    seats = _clockwise_from(stacks, button)
    problems = [
        f"seat {seat} has {chips} chips" for seat, chips in stacks.items() if not 0 < chips <= MAX_AMOUNT or seat < 1
    ]
    if not 2 <= len(seats) <= rulebook.seats:
        problems.append(f"{len(seats)} seats at a table of {rulebook.seats}")
    if carry < 0 or carry + sum(stacks.values()) > MAX_AMOUNT:
        problems.append(f"a carry of {carry}, or chips beyond 64 bits")
    for posted in (posts, dead_posts):
        if posted:
            problems += [
                f"seat {seat} posts {chips}" for seat, chips in posted.items() if seat not in stacks or chips < 0
            ]
    if problems:
        raise ValueError("this hand cannot be played: " + "; ".join(problems))
    none = (0,) * len(seats)
    empty: tuple[tuple[int, ...], ...] = ((),) * len(seats)
    return HandState(
        rulebook=rulebook.without_texts(),
        seats=seats,
        button=button,
        auto_muck=_muck_bits(auto_muck, seats),
        carry=carry,
        posts=tuple([posts.get(seat, 0) for seat in seats]) if posts else none,
        dead_posts=tuple([dead_posts.get(seat, 0) for seat in seats]) if dead_posts else none,
        stacks=tuple([stacks[seat] for seat in seats]),
        put=none,
        total=none,
        forced=none,
        live=(1 << len(seats)) - 1,
        hands=empty,
        discards=empty,
        drawn=(-1,) * len(seats),
        returned=none,
    )


def _clockwise_from(stacks: Mapping[int, int], button: int) -> tuple[int, ...]:
    ascending = sorted(stacks)
    return (*(seat for seat in ascending if seat > button), *(seat for seat in ascending if seat <= button))


def _muck_bits(auto_muck: Mapping[int, bool] | Collection[int] | None, seats: tuple[int, ...]) -> int:
    if auto_muck is None:
        return (1 << len(seats)) - 1
    muck = auto_muck
    choices = [muck.get(seat, True) if isinstance(muck, Mapping) else seat in muck for seat in seats]
    return sum(1 << position for position, mucks in enumerate(choices) if mucks)
