"""Carrying out a table's effects: calls of wallet, deck and registry, with ids that make each of them idempotent.

`perform` returns a change to be made to the table when the result is committed. Until then nothing has happened as
far as the table is concerned; whoever carries the effect out again gets the same cards and moves the same money.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from fivedraw.deck.v1 import deck_service_pb2 as deck
from fivedraw.table.v1 import table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet

from services.rules.cards import format_card, parse_card, parse_cards
from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.runtime.tasks import TaskSender, WriteHand
from services.table import opening, outcome, play, seating
from services.table import state as effects
from services.table.draft import Draft
from services.table.narrate import reshuffled
from services.table.ports import DeckPort, LedgerPort
from services.table.registry import Registry, Sitting
from services.table.state import AnyEffect, Effect, SeatChips, TableState
from services.table.store import TableStore, Unwritten

Change = Callable[[Draft], None]

# How the ledger names the outcome of a batch that was not refused.
OK: Final = "OK"

# The ledger, the deck or the registry knows of things that this table's state does not: it is behind them.
APART: Final = frozenset(
    {
        "STALE_EPOCH",
        "OTHER_HAND_OPEN",
        "HAND_CLOSED",
        "HAND_NOT_OPEN",
        "BATCH_CONFLICT",
        "STEP_CONFLICT",
        "CARRY_MISMATCH",
        "STACK_LOCKED",
        "STEP_OUT_OF_ORDER",
        "SITTING_NOT_FOUND",
        "SITTING_CLOSED",
        "SITTING_EXISTS",
        "NOT_SHUFFLED",
        "NOT_DEALT",
        "ALREADY_SHUFFLED",
        "ALREADY_DEALT",
        "ALREADY_DREW",
        "CARD_NOT_HELD",
    }
)
# A peer is away, or will not do anything just now: the same call again may succeed.
PASSING: Final = frozenset(
    {"SERVICE_UNAVAILABLE", "DEADLINE_EXCEEDED", "QUEUE_FULL", "DECK_UNHEALTHY", "LEDGER_CLOSED", "INTERNAL"}
)


class TableBehindError(RuntimeError):
    """The state is behind the ledger, the deck or the registry; it must be rebuilt from them."""


class Effects:
    """Carries out effects, each by its kind."""

    def __init__(
        self,
        ledger: LedgerPort,
        decks: DeckPort,
        *,
        registry: Registry,
        store: TableStore,
        clock: Clock,
        tasks: TaskSender,
    ) -> None:
        self._ledger = ledger
        self._decks = decks
        self._registry = registry
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._by_kind: dict[type[Effect], Callable[[TableState, Any], Awaitable[Change]]] = {
            effects.OpenHand: self._open_hand,
            effects.ShuffleDeck: self._shuffle_deck,
            effects.DealHand: self._deal_hand,
            effects.CollectBets: self._collect_bets,
            effects.ExchangeCards: self._exchange_cards,
            effects.DealLateCard: self._deal_late_card,
            effects.SettleHand: self._settle_hand,
            effects.UndoHand: self._undo_hand,
            effects.BuyIn: self._buy_in,
            effects.TopUp: self._top_up,
            effects.CashOut: self._cash_out,
            effects.RefundCarry: self._refund_carry,
            effects.WriteHistory: self._write_history,
            effects.CloseRegistry: self._close_registry,
        }

    async def perform(self, state: TableState, effect: AnyEffect) -> Change:
        """Carries one effect out and returns the change that follows from it.

        Raises `TableBehindError` where the state must be rebuilt first, else `Fault` with the refusal.
        """
        try:
            return await self._by_kind[type(effect)](state, effect)
        except Fault as fault:
            # A stack that cannot pay the blinds that the rules took from it is another one than the ledger's.
            is_short = fault.reason == "INSUFFICIENT_FUNDS" and isinstance(effect, effects.HAND_EFFECTS)
            if fault.reason in APART or is_short:
                raise TableBehindError(str(fault)) from fault
            raise

    async def _open_hand(self, state: TableState, effect: effects.OpenHand) -> Change:
        button = effect.button
        if not button:
            lots = deck.DrawLotsRequest(table=state.name, step_id=_step_id(state, effect, "lots"), seats=effect.seats)
            button = (await self._decks.draw_lots(lots)).seat
        if not await self._registry.open_hand(state.table_id, state.epoch, effect.hand, button):
            raise TableBehindError(f"the registry is beyond epoch {state.epoch}, hand {effect.hand}")
        opened = await self._decks.open_deck(
            deck.OpenDeckRequest(key=_key(state, effect), step_id=_step_id(state, effect, "open"))
        )
        return lambda draft: opening.hand_opened(draft, button, opened.deck_number, opened.commitment, opened.chain)

    async def _shuffle_deck(self, state: TableState, effect: effects.ShuffleDeck) -> Change:
        shuffled = await self._decks.cut_deck(
            deck.CutDeckRequest(
                key=_key(state, effect),
                step_id=_step_id(state, effect, "cut"),
                cut=effect.cut,
                player_seeds=[deck.PlayerSeed(seat=each.seat, seed=each.seed) for each in effect.seeds],
            )
        )
        return lambda draft: opening.deck_shuffled(draft, shuffled.root, effect)

    async def _deal_hand(self, state: TableState, effect: effects.DealHand) -> Change:
        await self._ledger.post_forced(
            wallet.PostForcedRequest(
                batch_id=_step_id(state, effect, "forced"),
                table=state.name,
                epoch=state.epoch,
                hand=effect.hand,
                dealt_in=effect.dealt_in,
                postings=_amounts(effect.postings),
                currency=state.currency,
                carry_in_minor=effect.carry_in,
            )
        )
        dealt = await self._decks.deal_cards(
            deck.DealCardsRequest(key=_key(state, effect), step_id=_step_id(state, effect, "deal"), seats=effect.seats)
        )
        hands = {each.seat: parse_cards(each.cards) for each in dealt.hands}
        return lambda draft: play.cards_dealt(draft, hands)

    async def _collect_bets(self, state: TableState, effect: effects.CollectBets) -> Change:
        await self._collect(state, effect, effect.round, effect.bets, effect.returned)
        return play.bets_collected

    async def _collect(
        self,
        state: TableState,
        effect: AnyEffect,
        number: int,
        bets: Iterable[SeatChips],
        returned: Iterable[SeatChips],
    ) -> None:
        await self._ledger.collect_bets(
            wallet.CollectBetsRequest(
                batch_id=_step_id(state, effect, f"collect-{number}"),
                table=state.name,
                epoch=state.epoch,
                hand=effect.hand,
                round=number,
                bets=_amounts(bets),
                returned=_amounts(returned),
            )
        )

    async def _exchange_cards(self, state: TableState, effect: effects.ExchangeCards) -> Change:
        given = await self._decks.exchange_cards(
            deck.ExchangeCardsRequest(
                key=_key(state, effect),
                step_id=_step_id(state, effect, f"exchange-{effect.seat}"),
                seat=effect.seat,
                discards=[format_card(card) for card in effect.discards],
                draw_now=effect.draw_now,
                folded_seats=effect.folded,
                rule=_rule(effect.mixed),
            )
        )
        cards = parse_cards(given.cards)
        shuffle = reshuffled(given.reshuffle) if given.HasField("reshuffle") else None
        return lambda draft: play.cards_exchanged(draft, effect.seat, cards, shuffle)

    async def _deal_late_card(self, state: TableState, effect: effects.DealLateCard) -> Change:
        given = await self._decks.deal_late_card(
            deck.DealLateCardRequest(
                key=_key(state, effect),
                step_id=_step_id(state, effect, f"late-{effect.seat}"),
                seat=effect.seat,
                burn=effect.burn,
                folded_seats=effect.folded,
                rule=_rule(effect.mixed),
            )
        )
        card = parse_card(given.card)
        shuffle = reshuffled(given.reshuffle) if given.HasField("reshuffle") else None
        return lambda draft: play.late_card_dealt(draft, effect.seat, card, given.burned, shuffle)

    async def _settle_hand(self, state: TableState, effect: effects.SettleHand) -> Change:
        if effect.round:
            await self._collect(state, effect, effect.round, effect.bets, effect.returned)
        # Listed before the commit that ends the hand, so that no end of a process can lose its history.
        await self._store.mark_unwritten(_unwritten(state, effect))
        awarded = await self._ledger.award_pot(
            wallet.AwardPotRequest(
                batch_id=_step_id(state, effect, "award"),
                table=state.name,
                epoch=state.epoch,
                hand=effect.hand,
                wins=_amounts(effect.wins),
                rake_minor=effect.rake,
                carry_out_minor=effect.carry_out,
            )
        )
        closed = await self._close_deck(state, effect, void=False)
        stacks = _stacks(awarded.stacks)
        return lambda draft: _then_between(draft, lambda: outcome.hand_settled(draft, stacks, closed.next_commitment))

    async def _undo_hand(self, state: TableState, effect: effects.UndoHand) -> Change:
        await self._store.mark_unwritten(_unwritten(state, effect))
        undone = await self._ledger.void_hand(
            wallet.VoidHandRequest(
                batch_id=_step_id(state, effect, "void"),
                table=state.name,
                epoch=state.epoch,
                hand=effect.hand,
                reason=f"{effect.by}: {effect.reason}"[:500],
            )
        )
        closed = await self._close_deck(state, effect, void=True)
        stacks = _stacks(undone.stacks)

        def change(draft: Draft) -> None:
            outcome.hand_undone(draft, effect, stacks, undone.carry_minor, closed.next_commitment)
            if effect.request is not None:
                seats = draft.change_hand().seats
                told = {number: draft.state.seats[number].stack for number in seats if number in draft.state.seats}
                draft.answer(effect.request, table_service_pb2.VoidHandResponse(stacks_minor=told))

        return lambda draft: _then_between(draft, lambda: change(draft))

    async def _close_deck(self, state: TableState, effect: AnyEffect, void: bool) -> deck.CloseDeckResponse:
        request = deck.CloseDeckRequest(key=_key(state, effect), step_id=_step_id(state, effect, "close"), void=void)
        try:
            return await self._decks.close_deck(request)
        except Fault as fault:
            # A hand can be void before its deck was ever opened.
            if void and fault.reason in ("HAND_NOT_FOUND", "HAND_NOT_OPEN"):
                return deck.CloseDeckResponse()
            raise

    async def _buy_in(self, state: TableState, effect: effects.BuyIn) -> Change:
        profile = await self._ledger.get_player(wallet.GetPlayerRequest(name=effect.player))
        display_name = profile.player.display_name
        sitting = Sitting(effect.sitting, effect.seat, effect.player, display_name)
        try:
            await self._registry.open_sitting(state.table_id, state.epoch, sitting, self._clock.now_ms())
        except Fault as fault:
            # The state had this seat free and the player elsewhere: the registry knows better.
            raise TableBehindError(str(fault)) from fault
        try:
            bought = await self._ledger.buy_in(
                wallet.BuyInRequest(
                    batch_id=_id(state, effect, "buy-in"),
                    table=state.name,
                    epoch=state.epoch,
                    sitting=effect.sitting,
                    player=effect.player,
                    currency=state.currency,
                    amount_minor=effect.amount,
                    seat=effect.seat,
                )
            )
        except Fault as fault:
            if fault.reason not in APART | PASSING:
                await self._registry.close_sitting(effect.sitting, None, self._clock.now_ms())
            raise
        return lambda draft: _then_seated(
            draft, lambda: seating.bought_in(draft, effect, bought.stack_minor, display_name)
        )

    async def _top_up(self, state: TableState, effect: effects.TopUp) -> Change:
        promise = f"{effect.sitting}:{effect.promise}:top-up"
        try:
            topped = await self._ledger.top_up(
                wallet.TopUpRequest(
                    batch_id=promise if effect.promise else _id(state, effect, "top-up"),
                    table=state.name,
                    epoch=state.epoch,
                    sitting=effect.sitting,
                    amount_minor=effect.amount,
                )
            )
        except Fault as fault:
            if fault.reason != "BATCH_CONFLICT" or fault.metadata.get("field") != "epoch":
                raise
            # It was decided in the moments that a rebuild lost.
            decided = fault.metadata.get("outcome", OK)
            if decided != OK:
                raise Fault(decided, "the ledger refused it before the table was rebuilt") from None
            return lambda draft: _then_seated(draft, lambda: seating.was_topped_up(draft, effect))
        # What was asked for long ago, and is asked again, is answered with the stack of then.
        stack = topped.stack_minor if effect.request is None else await self._stack(state, effect.sitting)
        return lambda draft: _then_seated(draft, lambda: seating.topped_up(draft, effect, stack))

    async def _stack(self, state: TableState, sitting: str) -> int:
        """What a sitting has by the ledger; it stays so while the seat waits for this effect."""
        answer = await self._ledger.get_table_ledger(wallet.GetTableLedgerRequest(table=state.name))
        return next(stack.stack_minor for stack in answer.ledger.stacks if stack.sitting == sitting)

    async def _cash_out(self, state: TableState, effect: effects.CashOut) -> Change:
        cashed = await self._ledger.cash_out(
            wallet.CashOutRequest(
                batch_id=_id(state, effect, "cash-out"),
                table=state.name,
                epoch=state.epoch,
                sitting=effect.sitting,
            )
        )
        await self._registry.close_sitting(effect.sitting, cashed.amount_minor, self._clock.now_ms())
        return lambda draft: _then_between(draft, lambda: seating.cashed_out(draft, effect, cashed.amount_minor))

    async def _refund_carry(self, state: TableState, effect: effects.RefundCarry) -> Change:
        refunded = await self._ledger.refund_carry(
            wallet.RefundCarryRequest(batch_id=_id(state, effect, "carry"), table=state.name, epoch=state.epoch)
        )
        return lambda draft: _then_between(draft, lambda: seating.carry_refunded(draft, refunded.amount_minor))

    async def _write_history(self, state: TableState, effect: effects.WriteHistory) -> Change:
        # Whether this reaches the broker or not, the hand stays listed until its row is there.
        self._tasks.send(WriteHand(state.name, effect.epoch, effect.hand))
        return seating.between_hands

    async def _close_registry(self, state: TableState, _effect: effects.CloseRegistry) -> Change:
        await self._registry.close_table(state.table_id, self._clock.now_ms())
        return lambda _draft: None


def _then_between(draft: Draft, change: Callable[[], None]) -> None:
    change()
    seating.between_hands(draft)


def _then_seated(draft: Draft, change: Callable[[], None]) -> None:
    change()
    seating.wake(draft)
    seating.between_hands(draft)


def _step_id(state: TableState, effect: AnyEffect, step: str) -> str:
    """The id of one step of a hand. A state that lost its last commits and goes another way comes back with the same id
    and other content, which the peer refuses: that is how the loss is noticed.
    """
    return f"{state.table_id}:{state.epoch}:h{effect.hand}:{step}"


def _id(state: TableState, effect: AnyEffect, step: str) -> str:
    """The id of a call between hands: never the same for two effects of a table, always the same for one."""
    return f"{state.table_id}:{state.epoch}:{effect.number}:{step}"


def _key(state: TableState, effect: AnyEffect) -> deck.HandKey:
    return deck.HandKey(table=state.name, epoch=state.epoch, hand=effect.hand)


def _rule(mixed: bool) -> deck.ReshuffleRule.ValueType:
    return deck.RESHUFFLE_RULE_MIXED if mixed else deck.RESHUFFLE_RULE_STUB_FIRST


def _amounts(chips: Iterable[SeatChips]) -> list[wallet.SittingAmount]:
    return [
        wallet.SittingAmount(sitting=each.sitting, amount_minor=each.amount, code=each.code)  # type: ignore[arg-type]
        for each in chips
    ]


def _stacks(stacks: Iterable[wallet.SittingStack]) -> dict[str, int]:
    return {stack.sitting: stack.stack_minor for stack in stacks}


def _unwritten(state: TableState, effect: effects.SettleHand | effects.UndoHand) -> Unwritten:
    return Unwritten(state.table_id, effect.first_epoch, effect.hand, effect.first_epoch, effect.first)
