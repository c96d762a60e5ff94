"""A strict reader of the tracker text, written from docs/histories.md and from nothing in the writer.

`check(text, owner)` reads one hand line by line, in the order of the format, refuses any line it does not know, follows
every chip, and returns what it found. Amounts are in the smallest unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

CARD = r"[2-9TJQKA][cdhs]"
FIVE = rf"{CARD}(?: {CARD}){{4}}"
CARDS = rf"{CARD}(?: {CARD})*"
RANK = r"(?:Deuce|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Jack|Queen|King|Ace)"
PLURAL = r"(?:Deuces|Threes|Fours|Fives|Sixes|Sevens|Eights|Nines|Tens|Jacks|Queens|Kings|Aces)"
HAND_NAME = "|".join(
    [
        rf"high card {RANK}",
        rf"a pair of {PLURAL}",
        rf"two pair, {PLURAL} and {PLURAL}",
        rf"three of a kind, {PLURAL}",
        rf"a straight, {RANK} to {RANK}",
        rf"a flush, {RANK} high",
        rf"a full house, {PLURAL} full of {PLURAL}",
        rf"four of a kind, {PLURAL}",
        rf"a straight flush, {RANK} to {RANK}",
        r"a Royal Flush",
    ]
)
HEADER = re.compile(
    r"PokerStars Hand #(?P<id>[1-9]\d*):  5 Card Draw (?P<limit>Limit|No Limit|Pot Limit) "
    r"\((?P<low>\S+)/(?P<high>\S+?)(?: (?P<code>USD|EUR|GBP))?\) - "
    r"\d{4}/\d\d/\d\d (?:\d|1\d|2[0-3]):[0-5]\d:[0-5]\d ET"
)
TABLE = re.compile(
    r"Table '(?P<table>[^']+)' (?P<max>[2-9])-max(?P<play> \(Play Money\))? Seat #(?P<button>\d+) is the button"
)


class GrammarError(AssertionError):
    """A line that is not in the format, or chips that do not add up."""


@dataclass
class Seat:
    name: str
    stack: int
    bet: int = 0
    put: int = 0
    paid_beyond_ante: int = 0
    collected: int = 0
    returned: int = 0
    folded: str = ""
    drew: bool = False
    shown: str = ""
    mucked: bool = False


@dataclass
class Found:
    hand_id: int
    limit: str
    real: bool
    seats: dict[str, Seat] = field(default_factory=dict)
    pot: int = 0
    rake: int = 0
    has: set[str] = field(default_factory=set)
    owner_cards: set[str] = field(default_factory=set)


def split(text: str) -> list[str]:
    """The hands of a file: each ends with two blank lines or more."""
    if not text:
        return []
    if not text.endswith("\n\n\n"):
        raise GrammarError("the file does not end with two blank lines")
    return [hand for hand in re.split(r"\n{3,}", text) if hand]


def check(hand: str, owner: str | None) -> Found:
    return _Reader(hand.split("\n"), owner).read()


class _Reader:
    def __init__(self, lines: list[str], owner: str | None) -> None:
        self.lines = lines
        self.at = 0
        self.owner = owner
        self.level = 0
        self.bets = 0

    def fail(self, why: str) -> GrammarError:
        line = self.lines[self.at] if self.at < len(self.lines) else "<end>"
        return GrammarError(f"line {self.at + 1}: {why}: {line!r}")

    def peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def take(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        match = re.fullmatch(pattern, self.peek())
        if match is not None:
            self.at += 1
        return match

    def need(self, pattern: str | re.Pattern[str], what: str) -> re.Match[str]:
        match = self.take(pattern)
        if match is None:
            raise self.fail(f"{what} expected")
        return match

    def money(self, text: str) -> int:
        if not self.found.real:
            if not re.fullmatch(r"0|[1-9]\d*", text):
                raise self.fail(f"no amount of play money: {text}")
            return int(text)
        match = re.fullmatch(rf"{re.escape(self.sign)}(0|[1-9]\d*)(?:\.(\d\d))?", text)
        if match is None or match[2] == "00":
            raise self.fail(f"no amount: {text}")
        return int(match[1]) * 100 + int(match[2] or 0)

    def read(self) -> Found:
        header = self.need(HEADER, "header")
        code = header["code"]
        self.sign = {"USD": "$", "EUR": "€", "GBP": "£", None: ""}[code]
        self.found = Found(int(header["id"]), header["limit"], code is not None)
        self.low, self.high = self.money(header["low"]), self.money(header["high"])
        table = self.need(TABLE, "table")
        if bool(table["play"]) == self.found.real:
            raise self.fail("play money said in one place only")
        self.button = int(table["button"])
        self._seats(int(table["max"]))
        self._posts()
        self.need(r"\*\*\* DEALING HANDS \*\*\*", "deal")
        self._dealt()
        self._round("before")
        live = self._live()
        if len(live) > 1:
            self._draw()
            self._round("after")
            live = self._live()
        self._settle(live)
        self._summary(live)
        if self.at != len(self.lines):
            raise self.fail("nothing more expected")
        return self.found

    def _seats(self, most: int) -> None:
        self.by_number: dict[int, Seat] = {}
        last = 0
        while match := self.take(r"Seat (\d+): (.+) \((\S+) in chips\)"):
            number = int(match[1])
            if not last < number <= most:
                raise self.fail("seats do not ascend")
            last = number
            seat = Seat(match[2], self.money(match[3]))
            if seat.stack <= 0 or seat.name in self.found.seats:
                raise self.fail("an empty stack or a name twice")
            self.by_number[number] = self.found.seats[seat.name] = seat
        if len(self.by_number) < 2 or self.button not in self.by_number:
            raise self.fail("fewer than two seats, or no button")

    def _pay(self, seat: Seat, amount: int, all_in: bool) -> None:
        if amount <= 0 or seat.put + amount > seat.stack:
            raise self.fail("more chips than the seat has")
        seat.put += amount
        if all_in != (seat.put == seat.stack):
            raise self.fail("all-in is not said where so, or said where not")

    def _posts(self) -> None:
        order = ["the ante", "small blind", "big blind", "small & big blinds"]
        last = 0
        self.marks: dict[str, str] = {}
        while match := self.take(
            r"(.+): posts (the ante|small blind|big blind|small & big blinds) (\S+?)( and is all-in)?"
        ):
            seat, kind, amount = self.found.seats[match[1]], match[2], self.money(match[3])
            rank = min(order.index(kind), 2)
            if rank < last:
                raise self.fail("antes, small blind, big blind is the order")
            last = rank
            self._pay(seat, amount, match[4] is not None)
            if kind != "the ante":
                seat.paid_beyond_ante += amount
                if kind == "small & big blinds":
                    # The missed small blind is dead; what counts as the bet is the big one.
                    self.found.has.add("posts both")
                    seat.bet += min(amount, self.low if self.found.limit == "Limit" else self.high)
                else:
                    seat.bet += amount
            else:
                self.found.has.add("ante")
            if kind in ("small blind", "big blind") and kind not in self.marks.values():
                self.marks[seat.name] = kind
        self.level = max(
            [self.low if self.found.limit == "Limit" else self.high, *(s.bet for s in self.found.seats.values())]
        )
        self.bets = 1

    def _dealt(self) -> None:
        match = self.take(rf"Dealt to (.+) \[({FIVE})\]")
        if match is not None:
            if match[1] != self.owner:
                raise self.fail("cards of somebody else")
            self.hand = match[2].split()
            self.found.owner_cards |= set(self.hand)
        elif self.owner in self.found.seats:
            raise self.fail("the owner's cards expected")

    def _events(self) -> None:
        while match := self.take(
            r"(.+) (has timed out|is disconnected|is sitting out|leaves the table)|.+ joins the table at seat #\d"
        ):
            self.found.has.add(match[2] or "joins")

    def _live(self) -> list[Seat]:
        return [seat for seat in self.found.seats.values() if not seat.folded]

    def _round(self, when: str) -> None:
        if when == "after":
            self.level = self.bets = 0
            for seat in self.found.seats.values():
                seat.bet = 0
        while True:
            self._events()
            match = self.take(
                r"(.+): (?:(folds)|(checks)|calls (\S+?)|bets (\S+?)|raises (\S+) to (\S+?))( and is all-in)?"
            )
            if match is None:
                break
            self._act(match, when)
        while match := self.take(r"Uncalled bet \((\S+)\) returned to (.+)"):
            seat, amount = self.found.seats[match[2]], self.money(match[1])
            if amount <= 0 or amount > seat.put:
                raise self.fail("returns more than was bet")
            seat.put -= amount
            seat.returned += amount
            self.found.has.add("uncalled")

    def _act(self, match: re.Match[str], when: str) -> None:
        seat = self.found.seats.get(match[1])
        if seat is None or seat.folded:
            raise self.fail("nobody who could act")
        all_in = match[8] is not None
        if match[2]:
            unpaid = "" if seat.paid_beyond_ante else " (didn't bet)"
            seat.folded = f"folded before the Draw{unpaid}" if when == "before" else "folded after the Draw"
        elif match[3]:
            pass
        else:
            if match[4]:
                added = self.money(match[4])
                if added > self.level - seat.bet:
                    raise self.fail("calls more than the bet")
                level = None
            elif match[5]:
                added = level = self.money(match[5])
                if self.level:
                    raise self.fail("bets into a bet")
            else:
                level = self.money(match[7])
                if self.money(match[6]) != level - self.level or level <= self.level:
                    raise self.fail("the raise is not from the last level")
                added = level - seat.bet
            self._pay(seat, added, all_in)
            seat.bet += added
            seat.paid_beyond_ante += added
            if all_in:
                self.found.has.add("all-in")
            if level is not None:
                self.level = level
                if self.take("Betting is capped"):
                    self.found.has.add("capped")
                    if self.found.limit != "Limit":
                        raise self.fail("a cap without a limit")

    def _draw(self) -> None:
        for _ in self._live():
            self._events()
            match = self.need(
                rf"(.+): (?:(stands pat)|discards (1) card|discards ([2-5]) cards)( \[({CARDS})\])?", "discard"
            )
            seat = self.found.seats[match[1]]
            if seat.folded or seat.drew:
                raise self.fail("draws twice, or after a fold")
            seat.drew = True
            count = 0 if match[2] else int(match[3] or match[4])
            own = seat.name == self.owner
            if (match[5] is not None) != (own and count > 0):
                raise self.fail("discards are the owner's only")
            if own and count:
                self._own_draw(match[6].split(), count)
            if self.take("The deck is reshuffled"):
                self.found.has.add("reshuffled")

    def _own_draw(self, discards: list[str], count: int) -> None:
        kept = [card for card in self.hand if card not in discards]
        if len(discards) != count or len(kept) != 5 - count:
            raise self.fail("discards are not the owner's cards")
        start = f"Dealt to {self.owner} " + (f"[{' '.join(kept)}] " if kept else "")
        match = self.need(rf"{re.escape(start)}\[({CARDS})\]", "the owner's new cards")
        new = match[1].split()
        if len(new) != count or set(new) & set(discards):
            raise self.fail("new cards are not as many, or came back")
        self.hand = kept + new
        self.found.owner_cards |= set(new)

    def _settle(self, live: list[Seat]) -> None:
        if len(live) > 1:
            self.need(r"\*\*\* SHOW DOWN \*\*\*", "showdown")
            for _ in live:
                match = self.need(rf"(.+): (?:shows \[({FIVE})\] \(({HAND_NAME})\)|(mucks hand))", "show or muck")
                seat = self.found.seats[match[1]]
                if seat.folded or seat.shown or seat.mucked:
                    raise self.fail("shows twice, or after a fold")
                seat.mucked = match[4] is not None
                seat.shown = f"{match[2]}|{match[3]}" if match[2] else ""
        pots: list[str] = []
        self.from_pot: dict[str, int] = {}
        while match := self.take(r"(.+) collected (\S+) from (pot|main pot|side pot(?:-\d)?)"):
            amount = self.money(match[2])
            self.found.seats[match[1]].collected += amount
            if match[3] not in pots:
                pots.append(match[3])
            elif pots[-1] != match[3]:
                raise self.fail("a pot is told in two places")
            self.from_pot[match[3]] = self.from_pot.get(match[3], 0) + amount
        sides = sorted((pot for pot in pots if pot.startswith("side")), reverse=True)
        if pots != ([*sides, "main pot"] if sides else ["pot"]):
            raise self.fail(f"pots {pots} are not side pots first")
        if sides:
            self.found.has.add("side pots")
        if len(live) == 1:
            if self.take(rf"{re.escape(live[0].name)}: doesn't show hand"):
                return
            match = self.need(rf"{re.escape(live[0].name)}: shows \[({FIVE})\] \(({HAND_NAME})\)", "doesn't show hand")
            live[0].shown = f"{match[1]}|{match[2]}"

    def _summary(self, live: list[Seat]) -> None:
        self.need(r"\*\*\* SUMMARY \*\*\*", "summary")
        match = self.need(r"Total pot (\S+)((?: (?:Main|Side) pot(?:-\d)? \S+\.)*) \| Rake (\S+)", "total")
        total, rake = self.money(match[1]), self.money(match[3])
        paid = sum(seat.put for seat in self.found.seats.values())
        collected = sum(seat.collected for seat in self.found.seats.values())
        if total != paid or total != collected + rake:
            raise self.fail(f"pot {total}, paid {paid}, collected {collected} and rake {rake}")
        named = re.findall(r"((?:Main|Side) pot(?:-\d)?) (\S+)\.", match[2])
        if {name.lower(): self.money(amount) for name, amount in named} != (
            self.from_pot if "main pot" in self.from_pot else {}
        ):
            raise self.fail("the pots are not what was collected from them")
        self.found.pot, self.found.rake = total, rake
        if rake:
            self.found.has.add("rake")
        for number, seat in self.by_number.items():
            mark = " (button)" if number == self.button else ""
            mark += f" ({self.marks[seat.name]})" if seat.name in self.marks else ""
            match = self.need(rf"Seat {number}: {re.escape(seat.name + mark)} (.+)", "the seat's end")
            self._fate(seat, match[1])
        if len(live) == 1 and not any(seat.drew for seat in live):
            self.found.has.add("before the draw")

    def _fate(self, seat: Seat, fate: str) -> None:
        if seat.folded:
            if fate != seat.folded:
                raise self.fail(f"{seat.folded} expected")
            return
        cards, _, name = seat.shown.partition("|")
        if seat.shown:
            end = r"won \((\S+)\)" if seat.collected else r"lost"
            match = re.fullmatch(rf"showed \[{cards}\] and {end} with {re.escape(name)}", fate)
            if match is None or (seat.collected and self.money(match[1]) != seat.collected):
                raise self.fail("what it showed and won expected")
        elif seat.collected:
            match = re.fullmatch(r"collected \((\S+)\)", fate)
            if match is None or self.money(match[1]) != seat.collected:
                raise self.fail("what it collected expected")
        elif re.fullmatch(rf"mucked \[{FIVE}\]", fate) is None:
            raise self.fail("mucked expected")
