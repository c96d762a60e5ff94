"""Steps that wait for the disk together: many callers' steps in one transaction, each answered after the commit."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from services.deck import metrics, steps
from services.deck.randomness import Randomness
from services.deck.requests import DrawLots, FenceTable, Request
from services.deck.sealed import HandSealer
from services.deck.store import Book
from services.deck.values import Answer, Fenced
from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault

STEPS_WAITING_MAX: Final = 4_096
STEPS_TOGETHER_MAX: Final = 64
# Two replicas may both open a table's first deck; the loser reads again and finds the winner's row.
INSERT_ATTEMPTS_MAX: Final = 3

Outcome = Answer | Fenced | int | Fault


class _Waiting(NamedTuple):
    request: Request
    future: asyncio.Future[Outcome]


class StepQueue:
    """Takes steps and answers them in the order they came. One transaction at a time, so that chance has one user."""

    def __init__(self, db: Database, clock: Clock, randomness: Randomness, sealer: HandSealer) -> None:
        self._db = db
        self._clock = clock
        self._randomness = randomness
        self._sealer = sealer
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def take(self, request: Request) -> Answer | Fenced | int:
        """The answer to a step, once it is durable. Raises `Fault`; QUEUE_FULL when too many steps wait.

        A caller that is cancelled does not know whether its step was taken; the same id asks again.
        """
        if len(self._waiting) >= STEPS_WAITING_MAX:
            raise Fault("QUEUE_FULL", f"{STEPS_WAITING_MAX} steps are waiting for the deck's disk")
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="deck-steps")
        outcome = await waiting.future
        if isinstance(outcome, Fault):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Waits until the steps that were accepted are answered."""
        if self._worker is not None:
            await self._worker

    async def _work(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), STEPS_TOGETHER_MAX))]
            group = [each for each in group if not each.future.done()]
            if group:
                await self._answer(group)
        self._worker = None

    async def _answer(self, group: list[_Waiting]) -> None:
        try:
            outcomes = await self._db.write(self._take_all, [each.request for each in group])
        except Exception as error:  # noqa: BLE001 - each caller of the group raises its own outcome
            # Nothing of the group was kept. Alone, a step that is at fault cannot take the others with it.
            if len(group) > 1:
                for each in group:
                    await self._answer_alone(each)
            elif isinstance(error, IntegrityError):
                await self._answer_alone(group[0])
            else:
                _fail(group[0].future, error)
            return
        _count([each.request for each in group], outcomes)
        for each, outcome in zip(group, outcomes, strict=True):
            if not each.future.done():
                each.future.set_result(outcome)

    async def _answer_alone(self, waiting: _Waiting) -> None:
        for attempt in range(1, INSERT_ATTEMPTS_MAX + 1):
            try:
                (outcome,) = await self._db.write(self._take_all, [waiting.request])
            except IntegrityError as error:
                if attempt == INSERT_ATTEMPTS_MAX:
                    _fail(waiting.future, error)
            except Exception as error:  # noqa: BLE001 - its caller raises it
                _fail(waiting.future, error)
                return
            else:
                _count([waiting.request], [outcome])
                if not waiting.future.done():
                    waiting.future.set_result(outcome)
                return

    def _take_all(self, conn: Connection, requests: list[Request]) -> list[Outcome]:
        """The transaction: read all that is needed, decide each step in turn, write all that changed."""
        book = Book(conn, self._sealer)
        hands = {(r.key.table, r.key.hand) for r in requests if not isinstance(r, FenceTable | DrawLots)}
        tables = {table for table, _ in hands} | {r.table for r in requests if isinstance(r, FenceTable)}
        book.load(tables, hands)
        now_ms = self._clock.now_ms()
        outcomes: list[Outcome] = []
        for request in requests:
            try:
                outcomes.append(steps.take(book, self._randomness, now_ms, request))
            except Fault as fault:
                outcomes.append(fault)
        book.flush()
        return outcomes


def _count(requests: list[Request], outcomes: list[Outcome]) -> None:
    metrics.STEPS_TOGETHER.observe(len(requests))
    for request, outcome in zip(requests, outcomes, strict=True):
        said = outcome.reason if isinstance(outcome, Fault) else "taken"
        metrics.STEPS.labels(type(request).__name__, said).inc()


def _fail(future: asyncio.Future[Outcome], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
