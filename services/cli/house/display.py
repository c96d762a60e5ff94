"""Shows a running house to whoever started it: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from services.cli.house.figures import Figures

LINE_EVERY_SECONDS: Final = 5.0


class Display(Protocol):
    """Somewhere to tell how the house is."""

    def say(self, line: str) -> None:
        """Tells something once."""
        ...

    def update(self, figures: Figures) -> None:
        """Tells the present figures, as often as it sees fit."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None: ...


def display_on(stream: TextIO) -> Display:
    """The display that fits a stream."""
    return LiveDisplay(stream) if stream.isatty() else PlainDisplay(stream)


class PlainDisplay:
    """A line every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._told_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def say(self, line: str) -> None:
        """Writes the line."""
        print(line, file=self._stream, flush=True)

    def update(self, figures: Figures) -> None:
        """Writes one line if the last one is old enough."""
        now = time.monotonic()
        if now - self._told_at < LINE_EVERY_SECONDS:
            return
        self._told_at = now
        self.say(line_of(figures))


class LiveDisplay:
    """A panel that is drawn anew in place."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._notes: list[str] = []
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        """Prints the line above the panel."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def update(self, figures: Figures) -> None:
        """Draws the panel."""
        self._live.update(Group(_table_of(figures), _rulebooks_of(figures)))


def line_of(figures: Figures) -> str:
    """The figures in one line."""
    restarts = sum(figures.restarts.values())
    return (
        f"{figures.seconds:7.1f} s  hands {figures.hands}  actions {figures.actions} "
        f"({figures.actions_per_second:.1f}/s)  chips in play {money(figures.chips_in_play_minor)}  "
        f"ledger balance {money(figures.ledger_balance_minor)}  errors {figures.errors}  restarts {restarts}"
    )


def money(amount_minor: int) -> str:
    """Minor units as a person writes them, e.g. `1,234.50`."""
    return f"{amount_minor / 100:,.2f}"


def _table_of(figures: Figures) -> Table:
    table = Table(title="fivedraw", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("running", f"{figures.seconds:.0f} s")
    table.add_row("hands", f"{figures.hands:,}")
    table.add_row("actions", f"{figures.actions:,} ({figures.actions_per_second:.1f}/s)")
    table.add_row("chips in play", money(figures.chips_in_play_minor))
    balance_style = "green" if figures.ledger_balance_minor == 0 else "bold red"
    table.add_row("ledger balance", Text(money(figures.ledger_balance_minor), style=balance_style))
    table.add_row("errors", Text(str(figures.errors), style="green" if figures.errors == 0 else "yellow"))
    restarts = ", ".join(f"{name} {count}" for name, count in figures.restarts.items()) or "none"
    table.add_row("restarts", restarts)
    return table


def _rulebooks_of(figures: Figures) -> Text:
    parts = [f"{rulebook} {hands}" for rulebook, hands in figures.hands_by_rulebook.items()]
    return Text("hands by rulebook: " + (", ".join(parts) or "none yet"), style="dim")
