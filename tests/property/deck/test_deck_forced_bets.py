"""The forced bets of random tables: both verifiers take what the rules engine posts, and refuse whatever it would not.

The engine is the oracle: a sequence is possible if it posts just that for some choice of seats that missed blinds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from types import SimpleNamespace

from services.deck.verification.bodies import ForcedBetPosted
from services.deck.verification.forced import ForcedBets
from services.deck.verification.payout import CourseBrokenError
from services.rules import hand as rules
from services.rules.commands import Begin
from services.rules.events import ForcedBetPosted as Posted
from tests.property.rules.tables import NAMES, random_table, rulebook_of
from tests.unit.deck.javascript import VERIFIER, run_node

SEED = 20_261_130
TABLES = 400
KINDS = ("ante", "small_blind", "big_blind", "post", "dead_blind")
# Each line a case; prints after how many bets it was refused and why, or nothing of both.
RUNNER = f"""
const {{ ForcedBets }} = require({json.dumps(str(VERIFIER))});
const refusal = ({{ options, order, stacks, bets }}) => {{
  const left = new Map(order.map((seat, n) => [seat, stacks[n]]));
  const forced = new ForcedBets(options, order, left);
  let taken = 0;
  try {{
    for (const [kind, seat, amount_minor] of bets) {{
      forced.take({{ kind, seat, amount_minor }}, "here");
      left.set(seat, left.get(seat) - amount_minor);
      taken++;
    }}
    forced.complete("here");
  }} catch (error) {{
    return [taken, error.message];
  }}
  return null;
}};
for (const line of require("node:fs").readFileSync(0, "utf8").split("\\n").filter(Boolean))
  console.log(JSON.stringify(refusal(JSON.parse(line))));
"""

Bet = tuple[str, int, int]
"""Kind, seat and chips."""


def posted_by_the_engine(table: dict, posts: set[int], dead: set[int]) -> list[Bet]:
    """What the rules engine posts if these seats owe a post, and these a dead blind."""
    book = rulebook_of(table)
    owed, owed_dead = dict.fromkeys(posts, book.big_blind), dict.fromkeys(dead, book.small_blind)
    state = rules.start_hand(book, table["stacks"], table["button"], table["carry"], owed, owed_dead)
    told = [event for event in rules.decide(state, Begin()) if isinstance(event, Posted)]
    return [(event.kind.replace("dead_post", "dead_blind"), event.seat, event.amount) for event in told]


def clockwise(table: dict) -> list[int]:
    return sorted(table["stacks"], key=lambda seat: (seat <= table["button"], seat))


def outside(table: dict) -> list[int]:
    """Who may post: the seats beyond the two blinds, in a game that has them."""
    return clockwise(table)[2:] if rulebook_of(table).big_blind else []


def is_possible(table: dict, bets: list[Bet]) -> bool:
    """Whether the engine posts this for somebody's missed blinds; who owes a dead one owes the big one too."""
    posts, dead = ({seat for kind, seat, _ in bets if kind == each} for each in ("post", "dead_blind"))
    fits = dead <= posts <= set(outside(table))
    return fits and posted_by_the_engine(table, posts, dead) == bets


def honest(rng: random.Random) -> tuple[dict, list[Bet]]:
    """A random table of a random rulebook, some of whose seats missed blinds."""
    table = random_table(rng)
    posts = {seat for seat in outside(table) if rng.random() < 0.4}
    return table, posted_by_the_engine(table, posts, {seat for seat in posts if rng.random() < 0.5})


def forged(table: dict, bets: list[Bet], kind: str, rng: random.Random) -> dict[str, list[Bet]]:
    """One change each to a bet of this kind: another amount, kind, seat or order, one bet too few or too many."""
    at = rng.choice([at for at, bet in enumerate(bets) if bet[0] == kind])
    _, seat, amount = bets[at]
    seats = clockwise(table)

    def put(*instead: Bet) -> list[Bet]:
        return [*bets[:at], *instead, *bets[at + 1 :]]

    made = {
        f"{kind}, more": put((kind, seat, amount + rng.choice((1, 40)))),
        f"{kind}, less": put((kind, seat, amount - 1)),
        f"{kind} missing": put(),
        "last missing": bets[:-1],
        f"{kind} twice": put(bets[at], bets[at]),
        f"{kind} of another": put((kind, rng.choice([each for each in seats if each != seat]), amount)),
        "swapped": [*bets[:at], *bets[at : at + 2][::-1], *bets[at + 2 :]],
        "dead blind": [*bets, ("dead_blind", rng.choice(seats), 30)],
        "post": [*bets, ("post", rng.choice(seats), rulebook_of(table).big_blind or 30)],
    }
    made |= {f"{kind} as {other}": put((other, seat, amount)) for other in KINDS if other != kind}
    return {name: each for name, each in made.items() if each != bets}


def case_of(table: dict, bets: list[Bet]) -> dict:
    book = rulebook_of(table)
    order = clockwise(table)
    options = {
        "ante_minor": book.ante,
        "small_blind_minor": book.small_blind,
        "big_blind_minor": book.big_blind,
    }
    return {"options": options, "order": order, "stacks": [table["stacks"][seat] for seat in order], "bets": bets}


def refused_in_python(case: dict) -> list | None:
    """After how many bets it was refused and why, or `None`."""
    left = dict(zip(case["order"], case["stacks"], strict=True))
    forced = ForcedBets(SimpleNamespace(**case["options"]), case["order"], left)
    taken = 0
    try:
        for kind, seat, amount in case["bets"]:
            forced.take(ForcedBetPosted(seat, kind, amount, False), left[seat], "here")
            left[seat] -= amount
            taken += 1
        forced.complete("here")
    except CourseBrokenError as broken:
        return [taken, f"{broken.check}: {broken}"]
    return None


def refused_in_javascript(cases: list[dict]) -> list[list | None]:
    done = run_node("-e", RUNNER, text="\n".join(map(json.dumps, cases)))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_both_take_what_the_engine_posts_and_refuse_what_it_would_not() -> None:
    rng = random.Random(SEED)
    cases, names, possible = [], [], []
    books, kinds = Counter(), Counter()
    for _ in range(TABLES):
        table, bets = honest(rng)
        books[table["rulebook"]] += 1
        kinds.update(kind for kind, _, _ in bets)
        kinds["short"] += sum(amount < book_size(table, kind) for kind, _, amount in bets)
        kinds["heads-up"] += len(table["stacks"]) == 2
        variants = [("honest", bets)]
        for kind in sorted({kind for kind, _, _ in bets}):
            variants += forged(table, bets, kind, rng).items()
        for name, each in variants:
            cases.append(case_of(table, each))
            names.append(name)
            possible.append(is_possible(table, each))
    mine, other = [refused_in_python(case) for case in cases], refused_in_javascript(cases)
    assert mine == other
    wrong = [
        (name, case, refused)
        for name, case, refused, fine in zip(names, cases, mine, possible, strict=True)
        if fine != (refused is None)
    ]
    assert wrong == []
    # Every rulebook, kind and short stack was among them, and every sort of change was refused.
    assert set(books) == set(NAMES)
    assert min(kinds[kind] for kind in (*KINDS, "short", "heads-up")) > 10
    assert all(fine for name, fine in zip(names, possible, strict=True) if name == "honest")
    refusals = Counter(name for name, fine in zip(names, possible, strict=True) if not fine)
    changes = {f"{kind}{how}" for kind in KINDS for how in (", more", ", less", " twice", " of another")}
    changes |= {f"{kind} missing" for kind in KINDS[:3]}
    changes |= {f"{kind} as {told}" for kind in KINDS for told in KINDS if kind != told}
    assert {name for name in changes if refusals[name] < 10} == set()
    assert min(refusals["dead blind"], refusals["last missing"]) > 100


def book_size(table: dict, kind: str) -> int:
    """What a bet of this kind is where the stack has as much."""
    book = rulebook_of(table)
    sizes = {"ante": book.ante, "small_blind": book.small_blind, "dead_blind": book.small_blind}
    return sizes.get(kind, book.big_blind)


def test_a_refusal_says_what_was_due() -> None:
    options = {"ante_minor": 1, "small_blind_minor": 5, "big_blind_minor": 10}
    antes = [("ante", seat, 1) for seat in (3, 4, 6, 1)]
    blinds = [*antes, ("small_blind", 3, 5), ("big_blind", 4, 8)]
    posts = [*blinds, ("post", 6, 10), ("post", 1, 10)]
    # The big blind has 9, of which the ante takes one; seat 1 has three left for its dead blind.
    table = {"options": options, "order": [3, 4, 6, 1], "stacks": [100, 9, 100, 14]}
    expected = {
        "chips: here: the ante of seat 4 is 1, not 41": [*antes[:1], ("ante", 4, 41)],
        "events: here: the ante of seat 4 is the next forced bet": [antes[0], *antes[2:]],
        "events: here: the ante of seat 1 did not come": antes[:3],
        "events: here: the big_blind of seat 4 did not come": blinds[:5],
        "chips: here: the big_blind of seat 4 is 8, not 10": [*blinds[:5], ("big_blind", 4, 10)],
        "events: here: the big_blind of seat 4 is the next forced bet": [*blinds[:5], ("post", 4, 8)],
        "events: here: no ante is due from anybody": [*blinds, ("ante", 6, 1)],
        "events: here: seat 3 is in the blinds, and posts nothing besides": [*blinds, ("post", 3, 5)],
        "events: here: seat 6 has no post beside its dead blind": [*blinds, ("dead_blind", 6, 5)],
        "chips: here: the dead_blind of seat 1 is 3, not 5": [*posts, ("dead_blind", 6, 5), ("dead_blind", 1, 5)],
        "events: here: it is out of order": [*posts, ("dead_blind", 6, 5), ("dead_blind", 6, 5)],
    }
    whole = [*posts, ("dead_blind", 6, 5), ("dead_blind", 1, 3)]
    cases = [{**table, "bets": bets} for bets in (whole, *expected.values())]
    mine = [refused_in_python(case) for case in cases]
    assert mine == refused_in_javascript(cases)
    assert mine[0] is None
    assert [why for _, why in filter(None, mine)] == list(expected)
