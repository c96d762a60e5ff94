"""The `fivedraw` command: each subcommand is loaded when it is called, so that none waits for another's imports."""

from __future__ import annotations

import importlib
from typing import Final

import click

# name: (module, attribute, one line of help)
COMMANDS: Final = {
    "up": ("services.cli.commands.up", "up_command", "Start a whole casino on this machine, with bots."),
    "bots": ("services.cli.commands.bots", "bots_command", "Let bots play tables over the public API."),
    "token": ("services.cli.commands.token", "token_command", "Print a bearer token."),
    "tables": ("services.cli.commands.tables", "tables_command", "List the tables of a house."),
    "rake": ("services.cli.commands.rake", "rake_command", "Show the rake by rulebook, table or day."),
    "hand": ("services.cli.hand", "hand_command", "Show a finished hand."),
    "hands": ("services.cli.hand", "hands_command", "List finished hands."),
    "audit": ("services.cli.audit", "audit_command", "Verify the ledger of a data folder."),
    "verify": ("services.cli.verify", "verify_command", "Verify a hand's fairness proof."),
    "scenario": ("services.cli.scenario", "scenario_command", "Play scenario files through the rules."),
    "replay": ("services.cli.replay", "replay_command", "Play recorded real hands through the rules."),
    "odds": ("services.cli.odds", "odds_command", "Exact odds of improving a hand."),
    "migrate": ("services.cli.commands.migrate", "migrate_command", "Bring databases up to date."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, _: click.Context) -> list[str]:
        """All names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command; `None` for a name that is not ours."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _help = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_module, _attribute, help_line) in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="fivedraw")
def main() -> None:
    """A casino for five card draw poker: run it, play it, check it."""


if __name__ == "__main__":
    main()
