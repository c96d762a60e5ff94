"""Requests, checked: each field by itself, with the field named in the refusal; nothing else is looked at here."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from fivedraw.table.v1 import table_pb2, table_service_pb2
from google.protobuf.message import Message

from services.rules.cards import CardUnknown, parse_cards
from services.runtime.auth import Identity
from services.runtime.errors import Fault
from services.table import asks, words
from services.table.registry import NewTable, Template
from services.table.state import Preselected, Request, TableSettings

ID_MAX: Final = 64
TABLE_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
TEMPLATE_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?")
TEMPLATE_TABLES_MAX: Final = 1_000
CURRENCY: Final = re.compile(r"[A-Z]{3,8}")
REASON_MAX: Final = 200
DISPLAY_NAME_MAX: Final = 60
CUT_BYTES_MAX: Final = 64
SEED_BYTES_MAX: Final = 64
COMMITMENT_BYTES: Final = 32
CARDS_MAX: Final = 5
HAND_INTERVAL_MAX_MS: Final = 600_000
DISCONNECT_MAX_MS: Final = 120_000
OBSERVERS_MAX: Final = 10_000
CHAT_MAX: Final = 200
AMOUNT_MAX: Final = 2**63 - 1
# Neither control characters nor those that break lines or turn the direction of a text round.
_PRINTABLE: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")

KINDS: Final = {
    **words.ACTION_NAME,
    table_pb2.ACTION_KIND_DISCARD: "discard",
    table_pb2.ACTION_KIND_CUT: "cut",
    table_pb2.ACTION_KIND_SHOW: "show",
}


PRESELECTIONS: Final[dict[int, Preselected]] = {
    table_pb2.PRESELECTION_UNSPECIFIED: "",
    table_pb2.PRESELECTION_CHECK_FOLD: "check_fold",
    table_pb2.PRESELECTION_CHECK: "check",
    table_pb2.PRESELECTION_CALL: "call",
}


def invalid(field: str, message: str) -> Fault:
    """A refusal that names the field."""
    return Fault("INVALID_REQUEST", f"{field}: {message}", field=field)


def table_id(name: str, field: str = "table") -> str:
    """The id in `tables/{table}`. Raises `INVALID_REQUEST`."""
    prefix, _, ident = name.partition("/")
    if prefix != "tables" or not TABLE_ID.fullmatch(ident):
        raise invalid(field, "must be 'tables/' and 1 to 40 of a-z, 0-9 and '-'")
    return ident


def request_of(identity: Identity, request_id: str, content: Message, field: str = "request_id") -> Request:
    """Who asks, under which id, and a digest of what. Raises `INVALID_REQUEST`."""
    if not 1 <= len(request_id) <= ID_MAX or not _PRINTABLE.fullmatch(request_id):
        raise invalid(field, f"must be 1 to {ID_MAX} printable characters")
    digest = hashlib.sha256(type(content).__name__.encode() + b"|" + content.SerializeToString(deterministic=True))
    return Request(caller_of(identity), request_id, digest.digest()[:16])


def caller_of(identity: Identity) -> str:
    """The caller as the table remembers it: a player's resource name, or an operator's subject."""
    return identity.player if "player" in identity.roles else f"operators/{identity.id}"


def amount(value: int, field: str) -> int:
    """A positive amount. Raises `INVALID_REQUEST`."""
    if not 1 <= value <= AMOUNT_MAX:
        raise invalid(field, f"must be from 1 to {AMOUNT_MAX} minor units")
    return value


def page_token(token: str) -> str:
    """The id after which a page begins, or nothing. Raises `INVALID_REQUEST`."""
    if token and not TABLE_ID.fullmatch(token):
        raise invalid("page_token", "must be empty, or from the last answer")
    return token


def lobby_filter(rulebook: str, currency: str) -> tuple[str, str]:
    """What a lobby is asked to show: either may be empty. Raises `INVALID_REQUEST`."""
    if rulebook:
        rulebook_id(rulebook, "rulebook")
    if currency and not CURRENCY.fullmatch(currency):
        raise invalid("currency", "must be empty, or 3 to 8 capital letters")
    return rulebook, currency


def check_stakes(least: int, most: int) -> None:
    """The stakes that a lobby is asked for; 0 is no bound. Raises `INVALID_REQUEST`."""
    if least < 0 or most < 0:
        raise invalid("min_stake_minor" if least < 0 else "max_stake_minor", "must be 0 or more")
    if most and least > most:
        raise invalid("max_stake_minor", f"must be 0, or at least min_stake_minor, {least}")


def viewer_of(identity: Identity) -> str:
    """Whose cards the caller may see: a player's own; the house's people see nobody's, whatever they are called."""
    return identity.player if "player" in identity.roles else ""


def reason(text: str) -> str:
    """A reason told to players. Raises `INVALID_REQUEST`."""
    if not 1 <= len(text) <= REASON_MAX or not _PRINTABLE.fullmatch(text):
        raise invalid("reason", f"must be 1 to {REASON_MAX} printable characters")
    return text


def new_table(identity: Identity, asked: table_service_pb2.CreateTableRequest) -> NewTable:
    """A table to open; its rulebook is looked at elsewhere. Raises `INVALID_REQUEST`."""
    request = request_of(identity, asked.request_id, asked)
    if not TABLE_ID.fullmatch(asked.table_id):
        raise invalid("table_id", "must be 1 to 40 of a-z, 0-9 and '-', not beginning or ending with '-'")
    if not CURRENCY.fullmatch(asked.currency):
        raise invalid("currency", "must be an ISO 4217 code, or 3 to 8 capital letters for play money")
    display_name = asked.display_name or asked.table_id
    if len(display_name) > DISPLAY_NAME_MAX or not _PRINTABLE.fullmatch(display_name):
        raise invalid("display_name", f"must be at most {DISPLAY_NAME_MAX} printable characters")
    book = rulebook_id(asked.rulebook, "rulebook")
    for bound in ("buy_in_min_minor", "buy_in_max_minor"):
        if asked.overrides.HasField(bound):
            raise invalid(f"overrides.{bound}", "follows from the stakes and cannot be set")
    return NewTable(
        table_id=asked.table_id,
        display_name=display_name,
        rulebook=book,
        overrides=words.overrides(asked.overrides),
        settings=settings(asked.overrides, "overrides"),
        currency=asked.currency,
        request_id=request.request_id,
        requested_by=request.caller,
        request_digest=request.digest.hex(),
    )


def settings(asked: table_pb2.GameOptions, field: str) -> TableSettings:
    """How a table is run; what is not set has its default. Raises `INVALID_REQUEST`."""
    given: dict[str, int | bool] = {}
    for name, option, most in (
        ("hand_interval", "hand_interval_ms", HAND_INTERVAL_MAX_MS),
        ("disconnect_time", "disconnect_ms", DISCONNECT_MAX_MS),
    ):
        if asked.HasField(name):  # type: ignore[arg-type]  # the names stand above
            given[option] = getattr(asked, name).ToMilliseconds()
            if not 0 <= given[option] <= most:
                raise invalid(f"{field}.{name}", f"must be from 0 to {most} ms")
    if asked.HasField("chat"):
        given["chat"] = asked.chat
    if asked.HasField("observers_max"):
        given["observers_max"] = asked.observers_max
        if not 0 <= asked.observers_max <= OBSERVERS_MAX:
            raise invalid(f"{field}.observers_max", f"must be from 0 to {OBSERVERS_MAX}")
    return TableSettings(**given)  # type: ignore[arg-type]  # each of its own kind


def new_template(identity: Identity, asked: table_service_pb2.CreateTemplateRequest) -> Template:
    """A template to make; its rulebook is looked at elsewhere. Raises `INVALID_REQUEST`."""
    request = request_of(identity, asked.request_id, asked)
    if not TEMPLATE_ID.fullmatch(asked.template_id):
        raise invalid("template_id", "must be 1 to 30 of a-z, 0-9 and '-', not beginning or ending with '-'")
    template = asked.template
    if not CURRENCY.fullmatch(template.currency):
        raise invalid("template.currency", "must be an ISO 4217 code, or 3 to 8 capital letters for play money")
    if not 1 <= template.max_tables <= TEMPLATE_TABLES_MAX:
        raise invalid("template.max_tables", f"must be from 1 to {TEMPLATE_TABLES_MAX}")
    if not 0 <= template.spare_tables <= template.max_tables:
        raise invalid("template.spare_tables", "must be from 0 to max_tables")
    return Template(
        template_id=asked.template_id,
        rulebook=rulebook_id(template.rulebook, "template.rulebook"),
        overrides=words.overrides(template.overrides),
        settings=settings(template.overrides, "template.overrides"),
        currency=template.currency,
        spare_tables=template.spare_tables,
        max_tables=template.max_tables,
        request_digest=request.digest.hex(),
    )


def rulebook_id(name: str, field: str) -> str:
    """The id in `rulebooks/{rulebook}`; the default one's for nothing. Raises `INVALID_REQUEST`."""
    prefix, _, book = (name or "rulebooks/house").partition("/")
    if prefix != "rulebooks" or not TABLE_ID.fullmatch(book):
        raise invalid(field, "must be 'rulebooks/' and a rulebook's id")
    return book


def template_id(name: str) -> str:
    """The id in `templates/{template}`. Raises `INVALID_REQUEST`."""
    prefix, _, ident = name.partition("/")
    if prefix != "templates" or not TEMPLATE_ID.fullmatch(ident):
        raise invalid("name", "must be 'templates/' and 1 to 30 of a-z, 0-9 and '-'")
    return ident


def chat_text(text: str) -> str:
    """What somebody says. Raises `INVALID_REQUEST`."""
    if not 1 <= len(text) <= CHAT_MAX or not text.strip() or not _PRINTABLE.fullmatch(text):
        raise invalid("text", f"must be 1 to {CHAT_MAX} printable characters")
    return text


def player_seed(identity: Identity, asked: table_service_pb2.SetPlayerSeedRequest) -> asks.SetSeed:
    """A player's entropy for the next shuffle. Raises `INVALID_REQUEST`."""
    request = request_of(identity, asked.request_id, asked)
    if len(asked.commitment) != COMMITMENT_BYTES:
        raise invalid("commitment", f"must be the {COMMITMENT_BYTES} bytes of the table's `seed_commitment`")
    if not 1 <= len(asked.seed) <= SEED_BYTES_MAX:
        raise invalid("seed", f"must be 1 to {SEED_BYTES_MAX} bytes")
    return asks.SetSeed(request, asked.commitment, asked.seed)


def action(identity: Identity, asked: table_service_pb2.SubmitActionRequest) -> asks.TakeAction:
    """An action in turn. Raises `INVALID_REQUEST`."""
    request = request_of(identity, asked.action_id, asked, "action_id")
    kind = KINDS.get(asked.action.kind)
    if kind is None:
        raise invalid("action.kind", "must be one of the kinds of actions")
    if asked.hand < 1:
        raise invalid("hand", "must be a hand's number, 1 or more")
    if asked.turn < 1 and kind != "show":
        raise invalid("turn", "must be a turn's number, 1 or more")
    if kind in ("bet", "raise"):
        amount(asked.action.to_minor, "action.to_minor")
    elif asked.action.to_minor:
        raise invalid("action.to_minor", f"has no meaning for {kind}")
    if len(asked.action.cards) > CARDS_MAX or (asked.action.cards and kind != "discard"):
        raise invalid("action.cards", f"must be at most {CARDS_MAX} cards, and only for a discard")
    if len(asked.action.cut) > CUT_BYTES_MAX or (asked.action.cut and kind != "cut"):
        raise invalid("action.cut", f"must be at most {CUT_BYTES_MAX} bytes, and only for a cut")
    try:
        cards = parse_cards(asked.action.cards)
    except CardUnknown:
        raise invalid("action.cards", "must be cards such as 'Td': a rank of 23456789TJQKA, a suit of cdhs") from None
    return asks.TakeAction(request, asked.hand, asked.turn, kind, asked.action.to_minor, cards, asked.action.cut)
