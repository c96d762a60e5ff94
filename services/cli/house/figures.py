"""What a running house's figures are, and whether its promises held."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fivedraw.wallet.v1 import wallet_service_pb2
from fivedraw_client import Client

from services.cli.bots.crew import Crew
from services.cli.bots.record import HANDS_KEPT, TableRecord

# How long a finished hand may take until its history is there.
HISTORY_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.25
FAULTS_TOLD: Final = 100

_IN_PLAY: Final = frozenset(
    {
        wallet_service_pb2.ACCOUNT_KIND_STACK,
        wallet_service_pb2.ACCOUNT_KIND_POT,
        wallet_service_pb2.ACCOUNT_KIND_CARRY,
    }
)


@dataclass(slots=True)
class Figures:
    """A house at one moment; amounts in minor units. `faults` names every broken promise."""

    seconds: float = 0.0
    hands: int = 0
    actions: int = 0
    all_ins: int = 0
    chips_in_play_minor: int = 0
    ledger_balance_minor: int = 0
    histories: int = 0
    errors: int = 0
    restarts: dict[str, int] = field(default_factory=dict)
    hands_by_rulebook: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    bot_actions: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    # Hands that are void because the tables' store lost its last writes; each has its history all the same.
    undone_hands: int = 0
    # Hands without any history, once all have had their time.
    lost_hands: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every promise held."""
        return not self.faults

    @property
    def actions_per_second(self) -> float:
        """Actions per second over the whole run."""
        return self.actions / self.seconds if self.seconds > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """The figures for machines."""
        return {"ok": self.ok, **asdict(self), "actions_per_second": round(self.actions_per_second, 2)}


def take_ledger(figures: Figures, ledger: wallet_service_pb2.GetLedgerSummaryResponse) -> None:
    """Takes in the ledger's totals."""
    figures.chips_in_play_minor = sum(total.amount_minor for total in ledger.totals if total.kind in _IN_PLAY)
    figures.ledger_balance_minor = sum(abs(balance.amount_minor) for balance in ledger.imbalance)


def take_crew(figures: Figures, crew: Crew) -> None:
    """Takes in what the bots counted."""
    figures.hands = crew.hands
    figures.actions = crew.actions
    figures.all_ins = sum(record.all_ins for record in crew.records)
    figures.hands_by_rulebook = crew.hands_by_rulebook()
    figures.outcomes = crew.outcomes()
    figures.bot_actions = crew.own_actions()
    figures.refusals = crew.refusals()
    figures.undone_hands = sum(hand.lost for record in crew.records for hand in record.hands.values())


async def verify(figures: Figures, auditor: Client, crew: Crew) -> None:
    """Checks every promise at the end of a run and writes what is broken into `figures.faults`.

    The ledger sums to zero and its own audit is clean; every finished hand has exactly one history row; no stream had a
    gap; nobody was told a card too early; no hand and no card came twice.
    """
    ledger = await auditor.ledger_summary()
    take_ledger(figures, ledger)
    if figures.ledger_balance_minor:
        figures.faults.append(f"the ledger does not sum to zero: {figures.ledger_balance_minor}")
    audit = await auditor.caller.call(auditor.wallet.AuditLedger, wallet_service_pb2.AuditLedgerRequest())
    if not audit.clean:
        figures.faults.extend(f"ledger: {fault}" for fault in audit.faults)
    rows = await asyncio.gather(*(_await_histories(auditor, record) for record in crew.records))
    for record, numbers in zip(crew.records, rows, strict=True):
        due = due_numbers(record)
        figures.histories += len(set(due) & set(numbers))
        figures.lost_hands += len(set(due) - set(numbers))
        figures.faults.extend(history_faults(record.table, due, numbers))
    for broken in (crew.gaps(), crew.leaks(), crew.faults()):
        figures.faults.extend(broken)
    del figures.faults[FAULTS_TOLD:]


async def _await_histories(auditor: Client, record: TableRecord) -> list[int]:
    """The hand numbers with a row, once all that are due have one, or have had their time."""
    limit = asyncio.get_running_loop().time() + HISTORY_SECONDS
    due = due_numbers(record)
    while True:
        numbers = [_number_of(row.name) async for row in auditor.list_hands(table=record.table, limit=2 * HANDS_KEPT)]
        if not set(due) - set(numbers) or asyncio.get_running_loop().time() > limit:
            return numbers
        await asyncio.sleep(POLL_SECONDS)


def due_numbers(record: TableRecord) -> range:
    """The numbers that must have a history: from the first hand that the bots saw to the last that they saw end.

    None in between is left out, since the house promises a row also for a hand whose events were lost.
    """
    finished = [hand.hand for hand in record.finished_hands()]
    return range(min(record.hands), max(finished) + 1) if finished else range(0)


def history_faults(table: str, finished: Iterable[int], rows: Iterable[int]) -> list[str]:
    """What is wrong with the history rows of a table, given the hands that were finished."""
    counts = Counter(rows)
    faults = [f"{table}: hand {hand} has {count} history rows" for hand, count in sorted(counts.items()) if count > 1]
    return faults + [f"{table}: hand {hand} has no history row" for hand in sorted(set(finished)) if hand not in counts]


def _number_of(hand: str) -> int:
    return int(hand.rpartition("/")[2])
