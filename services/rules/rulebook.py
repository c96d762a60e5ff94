"""A rulebook: every option of a game, checked as a whole, with titles and texts for people (RULES 2).

Rulebooks are TOML files; the engine reads their options and never their names. A file has `name`, the tables
`titles` and `texts` (language -> text) and `options`; options not given follow from those that are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from services.rules.options import (
    MAX_AMOUNT,
    OPTION_NAMES,
    Betting,
    Fault,
    FirstRound,
    RulebookInvalid,
    SecondRound,
    Value,
    derive,
    fault_of,
    override,
)

__all__ = ["Fault", "Rulebook", "RulebookInvalid", "RulebookUnknown", "list_rulebooks", "load_rulebook"]

RULEBOOK_FOLDER = Path(__file__).parent / "rulebooks"


class RulebookUnknown(LookupError):
    """No rulebook has this name; the text lists those there are."""


class Rulebook(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """All options of one game. Amounts in minor units; `rake_cap` 0 and `bets_per_round` 0 mean none.

    `min_buy_in` and `max_buy_in` are numbers of big blinds, or of antes where there are no blinds. `given` are the
    options that were given, the others follow from them.
    """

    name: str
    titles: dict[str, str]
    texts: dict[str, str]
    given: dict[str, Value]
    seats: int
    ante: int
    small_blind: int
    big_blind: int
    chip_unit: int
    betting: Betting
    small_bet: int
    big_bet: int
    spread_min: int
    spread_max: int
    bets_per_round: int
    first_round: FirstRound
    openers: str
    first_round_all_checked: Literal["pass_out"]
    second_round: SecondRound
    second_round_all_checked: Literal["showdown", "pass_out"]
    max_draw: int
    single_four_card_draw: bool
    cut: bool
    reshuffle: Literal["stub_first", "mixed"]
    action_clock_ms: int
    draw_clock_ms: int
    missed_draw: Literal["stand_pat", "stand_pat_no_raise"]
    losers: Literal["may_muck", "show_all"]
    odd_chips: Literal["left_of_button", "next_pot"]
    button_after_pass_out: Literal["stays", "moves"]
    rake_basis_points: int
    rake_cap: int
    time_bank_ms: int
    time_bank_growth_ms: int
    min_buy_in: int
    max_buy_in: int

    @property
    def unit_stake(self) -> int:
        """What buy-ins are counted in and the least bet without a limit: the big blind, or the ante without blinds."""
        return self.big_blind or self.ante

    @property
    def min_buy_in_minor(self) -> int:
        """The least that a player may sit down with, in minor units."""
        return self.min_buy_in * self.unit_stake

    @property
    def max_buy_in_minor(self) -> int:
        """The most that a player may sit down with or top up to, in minor units."""
        return self.max_buy_in * self.unit_stake

    def options(self) -> dict[str, Value]:
        """Every option by its name, derived ones included."""
        return {option: getattr(self, option) for option in sorted(OPTION_NAMES)}

    def with_options(self, overrides: Mapping[str, Value]) -> Rulebook:
        """This rulebook with some options overridden; what follows from them is derived anew.

        Raises `RulebookInvalid` with every fault.
        """
        return build_rulebook(self.name, override(self.given, overrides), self.titles, self.texts)

    def without_texts(self) -> Rulebook:
        """The options alone, as a hand's state keeps them."""
        if not (self.titles or self.texts or self.given):
            return self
        return msgspec.structs.replace(self, titles={}, texts={}, given={})


def load_rulebook(name: str, folder: Path | None = None) -> Rulebook:
    """The rulebook of this name, from `folder` if it has it, else from those that come with the product.

    Raises `RulebookUnknown` or `RulebookInvalid`.
    """
    for place in (folder, RULEBOOK_FOLDER):
        if place is not None and (place / f"{name}.toml").is_file() and Path(name).name == name:
            return _read(place / f"{name}.toml")
    known = ", ".join(rulebook.name for rulebook in list_rulebooks(folder))
    raise RulebookUnknown(f"there is no rulebook {name!r}; there are {known}")


def list_rulebooks(folder: Path | None = None) -> tuple[Rulebook, ...]:
    """All rulebooks by name: those of the product, and those of `folder`, which replace them where names agree."""
    files = {path.stem: path for place in (RULEBOOK_FOLDER, folder) if place for path in place.glob("*.toml")}
    return tuple(_read(files[name]) for name in sorted(files))


def read_rulebook(path: Path) -> Rulebook:
    """The rulebook in one TOML file. Raises `RulebookInvalid` with every fault, unknown keys among them."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulebookInvalid(path.stem, (Fault("file", f"not TOML: {error}", "a TOML file in UTF-8"),)) from error
    faults = [
        Fault(key, "unknown key", "only name, titles, texts and options")
        for key in content
        if key not in ("name", "titles", "texts", "options")
    ]
    if content.get("name", path.stem) != path.stem:
        faults.append(Fault("name", f"{content['name']!r} is not the file's name", repr(path.stem)))
    tables: dict[str, dict[str, Any]] = {}
    for key in ("titles", "texts", "options"):
        table = content.get(key, {})
        if not isinstance(table, dict):
            faults.append(Fault(key, "not a table", f"a table [{key}]"))
            table = {}
        tables[key] = table
    for key in ("titles", "texts"):
        if not isinstance(tables[key].get("en"), str):
            faults.append(Fault(f"{key}.en", "missing", "a text in English, further languages beside it"))
        faults += [
            Fault(f"{key}.{language}", "not a text", "a text")
            for language, text in tables[key].items()
            if not isinstance(text, str)
        ]
        tables[key] = {language: text for language, text in tables[key].items() if isinstance(text, str)}
    return build_rulebook(path.stem, tables["options"], tables["titles"], tables["texts"], faults)


@lru_cache(maxsize=64)
def _read_cached(path: Path, _modified_ns: int) -> Rulebook:
    return read_rulebook(path)


def _read(path: Path) -> Rulebook:
    return _read_cached(path, path.stat().st_mtime_ns)


def build_rulebook(
    name: str,
    given: Mapping[str, Value],
    titles: Mapping[str, str],
    texts: Mapping[str, str],
    faults: list[Fault] | None = None,
) -> Rulebook:
    """A rulebook of the options given. Raises `RulebookInvalid` with every fault, `faults` found before included."""
    found = list(faults or ())
    sound: dict[str, Value] = {}
    for option, value in given.items():
        fault = fault_of(option, value)
        if fault is None:
            sound[option] = value
        else:
            found.append(fault)
    rulebook = msgspec.convert(
        (name, dict(titles), dict(texts), dict(sound), *_in_order(derive(sound))), Rulebook, strict=True
    )
    found += contradictions(rulebook)
    if found:
        raise RulebookInvalid(name, tuple(found))
    return rulebook


def _in_order(full: Mapping[str, Value]) -> Iterator[Value]:
    return (full[field] for field in Rulebook.__struct_fields__[4:])


def contradictions(book: Rulebook) -> Iterator[Fault]:
    """Everything about the options together that could not be played."""
    burn = 1 if book.single_four_card_draw else 0
    if 52 - 5 * book.seats < book.max_draw + burn:
        yield Fault("seats", f"{book.seats} hands leave too few cards to draw {book.max_draw}", "fewer seats")
    yield from _forced_bet_faults(book)
    yield from _betting_faults(book)
    if book.second_round == "bet_or_fold" and book.missed_draw == "stand_pat_no_raise":
        yield Fault(
            "missed_draw", "who may not bet could only fold where nobody checks", "'stand_pat' with bet_or_fold"
        )
    if book.second_round == "bet_or_fold" and book.second_round_all_checked == "pass_out":
        yield Fault("second_round_all_checked", "nobody can check where one bets or folds", "'showdown'")
    if book.single_four_card_draw and book.max_draw != 4:
        yield Fault("max_draw", f"one four-card draw a hand needs 4, not {book.max_draw}", "4")
    if book.min_buy_in > book.max_buy_in:
        yield Fault("min_buy_in", f"{book.min_buy_in} is above max_buy_in {book.max_buy_in}", "no more than that")
    if book.seats * (book.max_buy_in_minor + 1) > MAX_AMOUNT:
        yield Fault("max_buy_in", "the stacks of a full table overflow 64 bits", "smaller stakes or buy-ins")


def _forced_bet_faults(book: Rulebook) -> Iterator[Fault]:
    if book.small_blind > book.big_blind:
        yield Fault(
            "small_blind", f"{book.small_blind} is more than the big blind {book.big_blind}", "no more than that"
        )
    if book.first_round == "blinds":
        if not book.big_blind:
            yield Fault("big_blind", "missing, though the blinds open the first round", "a big blind of 1 or more")
        if book.openers:
            yield Fault("openers", "the blinds have opened already", "'' with first_round 'blinds'")
        return
    if book.big_blind:
        yield Fault("big_blind", f"blinds contradict first_round {book.first_round!r}", "0, or first_round 'blinds'")
    if not book.ante:
        right = "an ante of 1 or more"
        yield Fault("ante", "nothing to play for without ante and blinds", right)
        if book.openers:
            yield Fault("openers", "a hand to open with needs an ante to open for", right)


def _betting_faults(book: Rulebook) -> Iterator[Fault]:
    if book.betting == "fixed_limit":
        if not book.small_bet:
            yield Fault("small_bet", "missing in fixed limit", "a bet of 1 or more")
        if book.big_bet != 2 * book.small_bet:
            yield Fault("big_bet", f"{book.big_bet} is not twice the small bet", str(2 * book.small_bet))
        if book.big_blind not in (0, book.small_bet):
            yield Fault(
                "big_blind", f"{book.big_blind} is not the small bet", f"{book.small_bet} in fixed limit, or none"
            )
    if book.betting == "spread_limit" and book.spread_max < book.spread_min + 2:
        wrong = f"{book.spread_max} leaves no bet after the draw"
        yield Fault("spread_max", wrong, f"{book.spread_min + 2} or more")
