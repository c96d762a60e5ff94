"""Reading the history by right: what `HistoryService` answers, without gRPC, for any caller in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from fivedraw.deck.v1 import deck_service_pb2
from fivedraw.history.v1 import history_service_pb2 as pb
from fivedraw.table.v1 import table_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from services.history import queries, store
from services.history.formats import WHOLE_HAND_FORMATS, WRITERS, phh, scenario, structured
from services.history.names import HandKey, parse_hand, parse_player, parse_rulebook, parse_table
from services.history.queries import Filters, Place
from services.history.record import decode
from services.history.replay import Replay, replay
from services.history.viewing import Unsealer, Viewer, view
from services.runtime.auth import Identity
from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault

EXPORT_HANDS_MAX: Final = 10_000
EXPORT_PAGE: Final = 50
# Where a file of many hands differs from one hand's text: JSON lines, and tables of one TOML document.
RANGE_WRITERS: Final[dict[int, Callable[[pb.Hand], str]]] = {
    **WRITERS,
    pb.HAND_FORMAT_JSON: structured.write_line,
    pb.HAND_FORMAT_SCENARIO: scenario.write_line,
    pb.HAND_FORMAT_PHH: phh.write_table,
}


class ProofReader(Protocol):
    """The deck service's proofs of closed hands."""

    async def read(
        self, request: deck_service_pb2.GetFairnessProofRequest
    ) -> deck_service_pb2.GetFairnessProofResponse:
        """The proof for the cards that a viewer saw. Raises `Fault` as the deck service does."""
        ...


class HandReader:
    """Reads hands for callers. `audit_delay_ms` counts from a hand's end; `proofs` is None where there is no deck."""

    def __init__(
        self,
        database: Database,
        sealer: Unsealer,
        clock: Clock,
        *,
        audit_delay_ms: int = 0,
        proofs: ProofReader | None = None,
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._audit_delay_ms = audit_delay_ms
        self._proofs = proofs

    async def get_hand(self, caller: Identity, name: str, *, with_proof: bool = False) -> pb.Hand:
        """One hand as the caller may see it. Raises `Fault` INVALID_REQUEST, HAND_NOT_FOUND, SERVICE_UNAVAILABLE."""
        return await self._seen(caller, name, "GetHand", with_proof)

    async def export_hand(self, caller: Identity, name: str, form: int, *, with_proof: bool = False) -> str:
        """One hand as text.

        Raises `Fault` INVALID_REQUEST, HAND_NOT_FOUND, FORMAT_CANNOT_EXPRESS, PERMISSION_DENIED, SEED_NOT_DUE,
        SERVICE_UNAVAILABLE.
        """
        writer = _writer(form, WRITERS)
        _check_format_right(caller, form)
        _check_proof(form, with_proof)
        purpose = f"ExportHand {pb.HandFormat.Name(form)}"  # type: ignore[arg-type]
        return writer(await self._seen(caller, name, purpose, with_proof))

    async def list_hands(self, caller: Identity, request: pb.ListHandsRequest) -> pb.ListHandsResponse:
        """A page of hands, newest first. Raises `Fault` INVALID_REQUEST, PERMISSION_DENIED."""
        filters = _filters(caller, request)
        size = queries.page_size(request.page_size)
        place = queries.parse_place(filters, request.page_token)
        page = await self._database.read(queries.list_hands, filters, place, size)
        return pb.ListHandsResponse(
            hands=[_summary(hand) for hand in page.hands], next_page_token=queries.place_token(filters, page.next)
        )

    async def export_hands(
        self, caller: Identity, request: pb.ExportHandsRequest
    ) -> AsyncIterator[pb.ExportHandsResponse]:
        """A range of hands as one file, oldest first, piece by piece. Raises `Fault` before the first piece."""
        filters = _filters(caller, request)
        writer = _writer(request.format, RANGE_WRITERS)
        _check_format_right(caller, request.format)
        _check_proof(request.format, request.with_proof)
        if not 0 <= request.max_hands <= EXPORT_HANDS_MAX:
            raise Fault("INVALID_REQUEST", f"max_hands: not between 1 and {EXPORT_HANDS_MAX}", field="max_hands")
        async for piece in self._pieces(caller, request, filters, writer, request.max_hands or EXPORT_HANDS_MAX):
            yield piece

    async def export_all(
        self, caller: Identity, request: pb.ExportHandsRequest
    ) -> AsyncIterator[pb.ExportHandsResponse]:
        """As `export_hands`, without a bound: for the house's own files, not for a call."""
        writer = _writer(request.format, RANGE_WRITERS)
        async for piece in self._pieces(caller, request, _filters(caller, request), writer, None):
            yield piece

    async def replay_hand(self, caller: Identity, name: str) -> Replay:
        """The hand as the caller would have watched it. Raises `Fault` INVALID_REQUEST, HAND_NOT_FOUND."""
        return replay(await self._seen(caller, name, "ReplayHand"))

    async def player_statistics(
        self, caller: Identity, request: pb.GetPlayerStatisticsRequest
    ) -> pb.GetPlayerStatisticsResponse:
        """A player's sums. Raises `Fault` INVALID_REQUEST, PERMISSION_DENIED."""
        player = _whose(caller, request.player) or caller.player
        from_ms, to_ms = _moments(request)
        sums = await self._database.read(queries.player_statistics, player, from_ms, to_ms)
        return pb.GetPlayerStatisticsResponse(
            player=player,
            statistics=[
                pb.PlayerStatistics(
                    rulebook=f"rulebooks/{each.rulebook}",
                    currency=each.currency,
                    hands=each.hands,
                    voluntary_hands=each.voluntary,
                    showdown_hands=each.showdowns,
                    won_at_showdown_hands=each.won_at_showdown,
                    won_hands=each.won,
                    net_minor=each.net_minor,
                )
                for each in sums
            ],
        )

    async def list_audit_reads(self, request: pb.ListAuditReadsRequest) -> pb.ListAuditReadsResponse:
        """A page of audit reads, newest first. Raises `Fault` INVALID_REQUEST."""
        size = queries.page_size(request.page_size)
        reads = await self._database.read(queries.list_audit_reads, queries.parse_number(request.page_token), size)
        return pb.ListAuditReadsResponse(
            reads=[
                pb.AuditRead(
                    reader=each.reader, hand=each.key.name, purpose=each.purpose, read_time=_stamp(each.read_ms)
                )
                for each in reads
            ],
            next_page_token=queries.number_token(reads[-1].seq if len(reads) == size else 0),
        )

    async def _pieces(
        self,
        caller: Identity,
        request: pb.ExportHandsRequest,
        filters: Filters,
        writer: Callable[[pb.Hand], str],
        left: int | None,
    ) -> AsyncIterator[pb.ExportHandsResponse]:
        purpose = f"ExportHands {pb.HandFormat.Name(request.format)}"
        place: Place | None = None
        while left is None or left > 0:
            size = EXPORT_PAGE if left is None else min(EXPORT_PAGE, left)
            page = await self._database.read(queries.list_hands, filters, place, size, oldest_first=True)
            left = None if left is None else left - len(page.hands)
            numbers = [hand.hand_id for hand in page.hands]
            piece = await self._piece(caller, numbers, writer, purpose, request.with_proof)
            if piece.hands or piece.left_out:
                yield piece
            place = page.next
            if place is None:
                return

    async def _seen(self, caller: Identity, name: str, purpose: str, with_proof: bool = False) -> pb.Hand:
        stored = await self._database.read(store.read_hand, parse_hand(name))
        if stored is None:
            raise Fault("HAND_NOT_FOUND", f"{name} is not in the history", hand=name)
        viewer = await self._viewer(caller, stored.key, stored.end_ms, purpose)
        hand = view(stored.key, stored.hand_id, decode(stored.record), viewer, self._sealer)
        if with_proof:
            await self._prove(hand, viewer)
        return hand

    async def _viewer(self, caller: Identity, key: HandKey, end_ms: int, purpose: str) -> Viewer:
        if caller.is_service:
            return Viewer()
        if "auditor" not in caller.roles:
            return Viewer(caller.player)
        now = self._clock.now_ms()
        due = end_ms + self._audit_delay_ms
        if now < due:
            if purpose.endswith("SCENARIO"):
                raise Fault("SEED_NOT_DUE", f"{key.name} is sealed until {due} ms", due_ms=str(due))
            return Viewer(caller.player)
        # Durable before a card is opened: there is no reading that was not noted.
        await self._database.write(store.insert_audit_read, caller.id, key, purpose, now)
        return Viewer(caller.player, audits=True)

    async def _piece(
        self,
        caller: Identity,
        numbers: list[int],
        writer: Callable[[pb.Hand], str],
        purpose: str,
        with_proof: bool,
    ) -> pb.ExportHandsResponse:
        records = await self._database.read(queries.read_records, numbers)
        piece = pb.ExportHandsResponse()
        texts: list[str] = []
        for number in numbers:
            record = records.get(number)
            if record is None:
                continue
            try:
                viewer = await self._viewer(caller, record.key, record.end_ms, purpose)
                hand = view(record.key, record.hand_id, decode(record.record), viewer, self._sealer)
                if with_proof:
                    await self._prove(hand, viewer)
                texts.append(writer(hand))
            except Fault as fault:
                # One hand that cannot be told, or not yet, must not keep the others from being told.
                if fault.reason not in ("FORMAT_CANNOT_EXPRESS", "SEED_NOT_DUE"):
                    raise
                piece.left_out += 1
            # Others are served between two hands: a page of them takes a while to write.
            await asyncio.sleep(0)
        piece.text = "".join(texts)
        piece.hands = len(texts)
        return piece

    async def _prove(self, hand: pb.Hand, viewer: Viewer) -> None:
        """Adds the proof for exactly the cards that stand in the hand; a hand that has no deck stays without one.

        The seed is asked for by whoever reads the whole hand by an auditor's right, and nobody else.
        """
        if hand.incomplete:
            return
        if self._proofs is None:
            raise Fault("SERVICE_UNAVAILABLE", "this house has no deck service to ask for a proof")
        request = deck_service_pb2.GetFairnessProofRequest(table=hand.table, hand=hand.hand, open_seed=viewer.audits)
        for seat in hand.seats:
            # By seat: a discard may be shuffled and dealt to somebody else, from a place that this viewer never saw.
            cards = dict.fromkeys((*seat.dealt, *seat.drawn, *seat.final_cards))
            if cards:
                request.seen_hands.add(seat=seat.seat, cards=cards)
        hand.proof.CopyFrom(await self._proofs.read(request))


def _writer(form: int, writers: dict[int, Callable[[pb.Hand], str]]) -> Callable[[pb.Hand], str]:
    writer = writers.get(form)
    if writer is None:
        raise Fault("INVALID_REQUEST", f"format: {form} is not one of this service", field="format")
    return writer


def _check_format_right(caller: Identity, form: int) -> None:
    if form in WHOLE_HAND_FORMATS and "auditor" not in caller.roles:
        raise Fault("PERMISSION_DENIED", "this format holds every card and is an auditor's", field="format")


def _check_proof(form: int, with_proof: bool) -> None:
    if with_proof and form != pb.HAND_FORMAT_JSON:
        raise Fault("INVALID_REQUEST", "with_proof: structured JSON alone has room for a proof", field="with_proof")


def _whose(caller: Identity, asked: str) -> str:
    """The player to filter by: for a player nobody but itself; empty for everybody."""
    if asked:
        parse_player(asked)
    if caller.is_service or caller.roles & {"operator", "auditor"}:
        return asked
    if asked and asked != caller.player:
        raise Fault("PERMISSION_DENIED", "a player lists its own hands only", field="player")
    return caller.player


def _filters(caller: Identity, request: pb.ListHandsRequest | pb.ExportHandsRequest) -> Filters:
    from_ms, to_ms = _moments(request)
    least = most = 0
    if isinstance(request, pb.ListHandsRequest):
        least, most = request.min_pot_minor, request.max_pot_minor
        if least < 0 or most < 0 or (most and least > most):
            raise Fault("INVALID_REQUEST", "min_pot_minor, max_pot_minor: not a range", field="min_pot_minor")
    return Filters(
        table_id=parse_table(request.table) if request.table else "",
        player=_whose(caller, request.player),
        rulebook=parse_rulebook(request.rulebook) if request.rulebook else "",
        from_ms=from_ms,
        to_ms=to_ms,
        min_pot_minor=least,
        max_pot_minor=most,
    )


def _moments(
    request: pb.ListHandsRequest | pb.ExportHandsRequest | pb.GetPlayerStatisticsRequest,
) -> tuple[int, int]:
    moments = []
    for field in ("from_time", "to_time"):
        stamp: Timestamp = getattr(request, field)
        try:
            milliseconds = stamp.ToMilliseconds()
        except ValueError:
            milliseconds = -1
        if milliseconds < 0 or not 0 <= stamp.nanos < 1_000_000_000:
            raise Fault("INVALID_REQUEST", f"{field}: no time since 1970", field=field)
        moments.append(milliseconds)
    return moments[0], moments[1]


def _stamp(milliseconds: int) -> Timestamp:
    stamp = Timestamp()
    stamp.FromMilliseconds(milliseconds)
    return stamp


def _summary(hand: queries.ListedHand) -> pb.HandSummary:
    return pb.HandSummary(
        name=hand.key.name,
        hand_id=hand.hand_id,
        rulebook=f"rulebooks/{hand.rulebook}",
        end_time=_stamp(hand.end_ms),
        outcome=table_pb2.HandOutcome.Name(hand.outcome),  # type: ignore[arg-type]
        pot_minor=hand.pot_minor,
        net_minor=hand.net_minor,
        currency=hand.currency,
        incomplete=hand.incomplete,
    )
