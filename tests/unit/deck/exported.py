"""Whole hands dealt by the real deck and told as the history exports them, for the verifiers' tests."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field, replace

from services.deck.decks import Decks
from services.deck.shuffling import PlayerSeed
from services.deck.values import HandKey, Proof, ReshuffleRule, SeatCards
from services.rules.cards import parse_cards
from services.rules.ranking import rank
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer

TABLE = "tables/oak"
BEGUN, BETWEEN, ENDED = (f"2026-01-01T00:00:0{second}.000Z" for second in range(3))
ANTE = 10
BET = 20
STACK = 1000


@dataclass
class Script:
    """One hand to be played: who sits, who folds before the draw, how many each discards, who draws four cards."""

    seats: tuple[int, ...] = (1, 2, 3)
    button: int = 1
    folds: tuple[int, ...] = ()
    discards: dict[int, int] = field(default_factory=dict)
    four_card_draw: int = 0
    rule: ReshuffleRule = ReshuffleRule.STUB_FIRST
    cut: bytes = b""
    player_seeds: tuple[PlayerSeed, ...] = ()
    void: bool = False
    shown: tuple[int, ...] = ()


def random_script(rng: random.Random, most_seats: int = 9) -> Script:
    """Any hand: up to nine seats, folds, draws, reshuffles of both kinds, late cards with and without a burn."""
    seats = tuple(sorted(rng.sample(range(1, 10), rng.randint(2, most_seats))))
    folds = tuple(rng.sample(seats, rng.randint(0, len(seats) - 2)))
    live = [seat for seat in seats if seat not in folds]
    four = rng.choice(live) if rng.random() < 0.5 else 0
    heavy = rng.random() < 0.6
    discards = {seat: rng.choice(((2, 3) if four else (3, 4, 5)) if heavy else (0, 1, 2, 3)) for seat in live}
    if four:
        discards[four] = 4
    return Script(
        seats=seats,
        button=rng.choice(seats),
        folds=folds,
        discards=discards,
        four_card_draw=four,
        rule=rng.choice(list(ReshuffleRule)),
        cut=rng.randbytes(rng.choice((0, 16))),
        player_seeds=tuple(PlayerSeed(seat, rng.randbytes(8)) for seat in seats if rng.random() < 0.5),
        shown=tuple(seat for seat in live if rng.random() < 0.5),
    )


@dataclass
class Played:
    """A played hand: everything, before anybody's view of it is taken."""

    script: Script
    hand: int
    events: list[dict]
    dealt: dict[int, list[str]]
    discarded: dict[int, list[str]]
    drawn: dict[int, list[str]]

    def final(self, seat: int) -> list[str]:
        return [card for card in self.dealt[seat] if card not in self.discarded[seat]] + self.drawn[seat]

    def tells(self, kind: str, seat: int) -> bool:
        return any(event["type"] == kind and event["body"]["seat"] == seat for event in self.events)

    def cut_off(self, told: list[dict]) -> None:
        """Makes it void after these events: what the deck did beyond them, nobody was told."""
        counts = dict.fromkeys(self.dealt, 0)
        for event in told:
            if event["type"] == "cards_drawn":
                counts[event["body"]["seat"]] += event["body"]["count"]
        discarded = {event["body"]["seat"] for event in told if event["type"] == "cards_discarded"}
        is_dealt = any(event["type"] == "cards_dealt" for event in told)
        for seat, count in counts.items():
            del self.drawn[seat][count:]
            self.discarded[seat] = self.discarded[seat] if seat in discarded else []
            self.dealt[seat] = self.dealt[seat] if is_dealt else []
        last = told[-1]["sequence"]
        stacks = {str(seat): STACK for seat in self.script.seats}
        voided = {"reason": "a test", "by": "house", "stacks_minor": stacks, "carry_minor": 0, "next_commitment": ""}
        end = {"sequence": last + 1, "epoch": 1, "hand": self.hand, "commit_time": ENDED}
        self.events = [*told, {**end, "type": "hand_voided", "body": voided}]
        shown = tuple(event["body"]["seat"] for event in told if event["type"] == "hand_shown")
        self.script = replace(self.script, shown=shown)


def player_of(seat: int) -> dict:
    """Who sits there."""
    return {"player": f"players/p{seat}", "display_name": f"P {seat}"}


def options_of(script: Script) -> dict:
    """The table's options: antes, open or fold, checked through to a showdown."""
    return {
        "seats": 9,
        "ante_minor": ANTE,
        "small_blind_minor": 0,
        "first_round": "open_or_fold",
        "big_blind_minor": 0,
        "second_round_all_checked": "showdown",
        "max_draw": 5,
        "single_four_card_draw": bool(script.four_card_draw),
        "cut": bool(script.cut),
        "reshuffle": script.rule.name.lower(),
        "odd_chips": "left_of_button",
        "rake_basis_points": 0,
        "rake_cap_minor": 0,
    }


def best_of(held: dict[int, list[str]]) -> list[int]:
    """The seats with the best hand, by the rules engine."""
    ranks = {seat: rank(parse_cards(cards)) for seat, cards in held.items()}
    return [seat for seat in held if ranks[seat] == max(ranks.values())]


class House:
    """A deck service in this process, and the table that plays scripts with it."""

    def __init__(self, seed: int | None = None) -> None:
        self.database = Database("sqlite://", inline=True)
        self.database.migrate_now("deck")
        entropy = {} if seed is None else {"entropy": random.Random(seed).randbytes}
        self.decks = Decks(self.database, SystemClock(), Sealer([("test", bytes(32))]), seed_delay_ms=0, **entropy)
        self.hands = 0

    async def play(self, script: Script) -> Played:
        """Plays a hand to its close."""
        self.hands += 1
        number, decks = self.hands, self.decks
        key = HandKey(TABLE, 1, number)
        order = tuple(sorted(script.seats, key=lambda seat: (seat <= script.button, seat)))
        story = Story(number, order)
        opened = await decks.open_deck(key, "open")
        story.tell(
            "hand_started",
            button=script.button,
            seats=[
                {"seat": seat, **player_of(seat), "stack_minor": STACK, "sitting": f"oak.{seat}"}
                for seat in sorted(script.seats)
            ],
            carry_minor=0,
            deck_number=opened.deck_number,
            commitment=opened.commitment.hex(),
            chain=opened.chain.hex(),
            options=options_of(script),
        )
        cutter = order[0] if script.cut else 0
        if cutter:
            story.ask(cutter)
        frozen = await decks.cut_deck(key, "cut", cut=script.cut, player_seeds=script.player_seeds)
        seeds = [{"seat": each.seat, "seed": each.seed.hex()} for each in script.player_seeds]
        story.tell("deck_committed", root=frozen.root.hex(), cut_by=cutter, cut=script.cut.hex(), player_seeds=seeds)
        for seat in order:
            story.pay("forced_bet_posted", seat, ANTE, kind="ante", amount_minor=ANTE)
        answer = await decks.deal_cards(key, "deal", seats=order)
        dealt = {hand.seat: list(hand.cards) for hand in answer.hands}
        played = Played(script, number, story.events, dealt, {s: [] for s in order}, {s: [] for s in order})
        story.tell("cards_dealt", seats=list(order))
        live = [seat for seat in order if seat not in script.folds]
        story.stage("first_round")
        for seat in order:
            if seat in script.folds:
                story.act(seat, "fold", 0, owes=story.level)
            else:
                story.act(seat, "call" if story.level else "bet", BET, owes=story.level)
        story.tell("bets_collected", round=1, pot_minor=story.pot)
        story.stage("draw")
        await self._draw(key, script, live, played, story)
        closed = await decks.close_deck(key, "close", void=script.void)
        self._finish(script, live, played, story)
        story.tell("hand_settled", next_commitment=closed.next_commitment.hex())
        return played

    def _finish(self, script: Script, live: list[int], played: Played, story: Story) -> None:
        """Checked through to a showdown if anybody shall show; else the first seat bets and the others fold.

        Who shall not show mucks, unless no hand shown before is better.
        """
        story.stage("second_round")
        for seat in live:
            if script.shown:
                story.act(seat, "check", 0)
            elif seat == live[0]:
                story.act(seat, "bet", BET)
            else:
                story.act(seat, "fold", 0, owes=BET)
        if not script.shown:
            story.pay("bet_returned", live[0], -BET, amount_minor=BET)
        story.tell("bets_collected", round=2, pot_minor=story.pot)
        shown: dict[int, list[str]] = {}
        for seat in live if script.shown else ():
            held = played.final(seat)
            if seat in script.shown or seat in best_of({**shown, seat: held}):
                shown[seat] = held
                story.tell("hand_shown", seat=seat, cards=held, hand_name="a hand", voluntary=False)
            else:
                story.tell("hand_mucked", seat=seat)
        winners = best_of(shown) if shown else live[:1]
        share, odd = divmod(story.pot, len(winners))
        won = {seat: share + (place < odd) for place, seat in enumerate(winners)}
        by_seat = {str(seat): won[seat] for seat in sorted(won)}
        story.tell("pot_awarded", pot={"index": 0, "amount_minor": story.pot, "winners": by_seat, "rake_minor": 0})
        for seat in winners:
            story.stacks[seat] += won[seat]
        outcome = "showdown" if shown else "uncontested"
        stacks = {str(seat): story.stacks[seat] for seat in sorted(story.stacks)}
        story.tell("hand_ended", outcome=outcome, carry_minor=0, rake_minor=0, stacks_minor=stacks)

    async def _draw(self, key: HandKey, script: Script, live: list[int], played: Played, story: Story) -> None:
        rng = random.Random(played.hand)
        for seat in live:
            count = script.discards.get(seat, 0)
            given = rng.sample(played.dealt[seat], count)
            played.discarded[seat] = given
            story.ask(seat)
            story.tell("cards_discarded", seat=seat, count=count, by_clock=False, turn=story.turn)
            if not count:
                continue
            now = 3 if seat == script.four_card_draw else count
            answer = await self.decks.exchange_cards(
                key,
                f"exchange-{seat}",
                seat=seat,
                discards=given,
                draw_now=now,
                folded_seats=script.folds,
                rule=script.rule,
            )
            story.reshuffled(answer.reshuffle)
            story.tell("cards_drawn", seat=seat, count=now, late=False)
            played.drawn[seat] += answer.cards
        if script.four_card_draw:
            seat = script.four_card_draw
            late = await self.decks.deal_late_card(
                key, "late", seat=seat, burn=seat == live[-1], folded_seats=script.folds, rule=script.rule
            )
            story.reshuffled(late.reshuffle)
            if late.burned:
                story.tell("card_burned")
            story.tell("cards_drawn", seat=seat, count=1, late=True)
            played.drawn[seat].append(late.card)

    async def export(self, played: Played, viewer: int, *, open_seed: bool = False) -> dict:
        """The hand as the history tells it to the player in seat `viewer` (0: the public)."""
        script = played.script
        whole = set(script.seats) if open_seed else {viewer} - {0}
        seats, seen = [], []
        ended = next(event for event in played.events if event["type"] in ("hand_voided", "hand_ended"))
        for seat in sorted(script.seats):
            final = played.final(seat) if seat in whole or played.tells("hand_shown", seat) else []
            told = {
                "seat": seat,
                **player_of(seat),
                "stack_before_minor": STACK,
                "stack_after_minor": ended["body"]["stacks_minor"][str(seat)],
                "dealt": played.dealt[seat] if seat in whole else [],
                "discarded": played.discarded[seat] if seat in whole else [],
                "drawn": played.drawn[seat] if seat in whole else [],
                "final_cards": final,
                "shown": played.tells("hand_shown", seat),
                "mucked": played.tells("hand_mucked", seat),
                "timed_out": False,
            }
            seats.append(told)
            cards = dict.fromkeys([*told["dealt"], *told["drawn"], *final])
            seen += [SeatCards(seat, tuple(cards))] if cards else []
        proof = await self.decks.get_fairness_proof(TABLE, played.hand, seen_hands=seen, open_seed=open_seed)
        awarded = [event["body"]["pot"] for event in played.events if event["type"] == "pot_awarded"]
        return {
            "name": f"{TABLE}/hands/{played.hand}",
            "table": TABLE,
            "hand": played.hand,
            "epoch": 1,
            "start_time": BEGUN,
            "end_time": ENDED,
            "button": script.button,
            "seats": seats,
            "events": [_seen_by(event, played, viewer, whole) for event in played.events],
            "outcome": "void" if script.void else ended["body"]["outcome"],
            "options": options_of(script),
            "your_seat": viewer,
            "rake_minor": 0,
            "carry_in_minor": 0,
            "carry_out_minor": 0,
            "incomplete": False,
            "void_reason": ended["body"].get("reason", ""),
            "pots": [] if script.void else awarded,
            "proof": proof_object(proof),
        }


class Story:
    """The events of one hand, and the chips and turns that they are about."""

    def __init__(self, hand: int, order: tuple[int, ...]) -> None:
        self._hand = hand
        self.events: list[dict] = []
        self.stacks = dict.fromkeys(order, STACK)
        self.pot = self.turn = self.level = 0

    def tell(self, kind: str, /, **body: object) -> None:
        time = {"hand_started": BEGUN, "hand_ended": ENDED}.get(kind, BETWEEN)
        event = {"sequence": 100 * self._hand + len(self.events), "epoch": 1, "hand": self._hand, "commit_time": time}
        self.events.append({**event, "type": kind, "body": body})

    def stage(self, stage: str) -> None:
        self.level = 0
        self.tell("stage_started", stage=stage, pot_minor=self.pot)

    def ask(self, seat: int, owes: int = 0) -> None:
        self.turn += 1
        turn = {"seat": seat, "turn": self.turn, "deadline": BETWEEN, "to_call_minor": owes}
        self.tell("turn_started", turn=turn)

    def pay(self, kind: str, seat: int, amount: int, /, **more: object) -> None:
        self.stacks[seat] -= amount
        self.pot += amount
        all_in = {} if kind == "bet_returned" else {"all_in": False}
        self.tell(kind, seat=seat, **all_in, **more)

    def act(self, seat: int, kind: str, amount: int, owes: int = 0) -> None:
        self.ask(seat, owes)
        facts = {"kind": kind, "to_minor": amount, "added_minor": amount, "by_clock": False, "turn": self.turn}
        self.pay("action_taken", seat, amount, **facts)
        self.level = max(self.level, amount)

    def reshuffled(self, told) -> None:
        if told is not None:
            self.tell(
                "deck_reshuffled",
                number=told.number,
                cards=told.cards,
                root=told.root.hex(),
                dealt_before=told.dealt_before,
            )


def _seen_by(event: dict, played: Played, viewer: int, whole: set[int]) -> dict:
    """The event with the private part of whoever may see it."""
    event = json.loads(json.dumps(event))
    body = event["body"]
    if event["type"] == "cards_dealt":
        body["your_cards"] = played.dealt[viewer] if viewer else []
    if event["type"] == "cards_discarded":
        body["your_discards"] = played.discarded[body["seat"]] if body["seat"] in whole else []
    if event["type"] == "cards_drawn":
        drawn = played.drawn[body["seat"]]
        cards = drawn[3:] if body["late"] else drawn[: body["count"]]
        body["your_cards"] = cards if body["seat"] in whole else []
    return event


def proof_object(proof: Proof) -> dict:
    """The proof as structured JSON."""
    return {
        "version": proof.version,
        "deck_number": proof.deck_number,
        "commitment": proof.commitment.hex(),
        "chain": proof.chain.hex(),
        "previous_chain": proof.previous_chain.hex(),
        "shuffles": [{"shuffle": s.shuffle, "root": s.root.hex(), "cards": s.cards} for s in proof.shuffles],
        "places": [
            {
                "shuffle": place.shuffle,
                "place": place.place,
                "card": place.card,
                "salt": place.salt.hex(),
                "path": [node.hex() for node in place.path],
            }
            for place in proof.places
        ],
        "passed": [{"shuffle": each.shuffle, "place": each.place} for each in proof.passed],
        "seed": proof.seed.hex(),
        "cut": proof.cut.hex(),
        "player_seeds": [{"seat": each.seat, "seed": each.seed.hex()} for each in proof.player_seeds],
        "void": proof.void,
    }


def exported(script: Script, viewer: int, *, open_seed: bool = False, seed: int | None = None) -> dict:
    """One hand, played and exported."""

    async def play() -> dict:
        house = House(seed)
        return await house.export(await house.play(script), viewer, open_seed=open_seed)

    return asyncio.run(play())
