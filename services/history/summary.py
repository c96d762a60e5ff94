"""What a list, an index and a statistic need of a hand, worked out once from its public events when it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

from services.history.names import HandKey
from services.history.record import LogCutError, RecordBrokenError, public_events, to_ms

VOLUNTARY_KINDS: Final = frozenset({table_pb2.ACTION_KIND_CALL, table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE})
BEFORE_THE_DRAW: Final = frozenset({table_pb2.STAGE_OPENING, table_pb2.STAGE_FIRST_ROUND})

# A hand's events by what happened, each list in sequence.
_Bodies = dict[str, list[event_pb2.TableEvent]]


@dataclass(slots=True)
class PlayerSummary:
    """One player in one hand; amounts in minor units."""

    player: str
    seat: int
    stack_before_minor: int = 0
    net_minor: int = 0
    # Chips that came out of pots, uncalled bets not counted.
    won_minor: int = 0
    # Called, bet or raised before the draw.
    voluntary: bool = False
    folded: bool = False
    # Was live when hands were compared.
    showdown: bool = False


@dataclass(slots=True)
class Summary:
    """One hand; amounts in minor units, times in milliseconds since the Unix epoch."""

    key: HandKey
    epoch: int
    rulebook: str
    currency: str
    start_ms: int
    end_ms: int
    outcome: table_pb2.HandOutcome.ValueType
    pot_minor: int = 0
    rake_minor: int = 0
    carry_in_minor: int = 0
    carry_out_minor: int = 0
    incomplete: bool = False
    players: list[PlayerSummary] = field(default_factory=list)


def summarise(key: HandKey, record: record_pb2.HandRecord) -> Summary:
    """Sums up a record. Raises `RecordBrokenError` where it is not one whole hand, the one that `key` names."""
    if record.table.name != key.table:
        raise RecordBrokenError(f"the record is of {record.table.name}, not of {key.table}")
    if record.HasField("ledger"):
        return _from_ledger(key, record)
    return _from_events(key, record)


def _from_events(key: HandKey, record: record_pb2.HandRecord) -> Summary:
    bodies = _in_order(key, record)
    started = _only(bodies, "hand_started")
    ended, voided = _only(bodies, "hand_ended"), _only(bodies, "hand_voided")
    if started is None:
        raise LogCutError(f"{key.name}: the log has no beginning")
    end = voided or ended
    if end is None:
        raise LogCutError(f"{key.name}: the log has no end")
    summary = Summary(
        key=key,
        epoch=started.epoch,
        rulebook=record.table.rulebook.removeprefix("rulebooks/"),
        currency=record.table.currency,
        start_ms=to_ms(started.commit_time),
        end_ms=to_ms(end.commit_time),
        outcome=table_pb2.HAND_OUTCOME_VOID if voided else end.hand_ended.outcome,
        carry_in_minor=started.hand_started.carry_minor,
    )
    players = {
        seat.seat: PlayerSummary(seat.player, seat.seat, seat.stack_minor) for seat in started.hand_started.seats
    }
    if not players:
        raise RecordBrokenError(f"{key.name}: nobody was dealt in")
    _play(bodies, players)
    if voided:
        summary.carry_out_minor = voided.hand_voided.carry_minor
        for player in players.values():
            player.won_minor, player.showdown = 0, False
    else:
        _settle(summary, bodies, end.hand_ended, players)
    summary.players = [players[seat] for seat in sorted(players)]
    return summary


def _in_order(key: HandKey, record: record_pb2.HandRecord) -> _Bodies:
    """The events by what happened, after a look at their hand and sequence."""
    bodies: _Bodies = {}
    last = (-1, -1)
    for event in public_events(record):
        place = (event.epoch, event.sequence)
        if event.hand not in (0, key.hand):
            raise RecordBrokenError(f"{key.name}: event {place[1]} is of hand {event.hand}")
        if place <= last:
            raise RecordBrokenError(f"{key.name}: event {place[1]} does not follow {last[1]}")
        last = place
        bodies.setdefault(event.WhichOneof("body") or "", []).append(event)
    return bodies


def _only(bodies: _Bodies, body: str) -> event_pb2.TableEvent | None:
    found = bodies.get(body, [])
    if len(found) > 1:
        raise RecordBrokenError(f"hand {found[0].hand}: {body} happened {len(found)} times")
    return found[0] if found else None


def _play(bodies: _Bodies, players: dict[int, PlayerSummary]) -> None:
    stages = bodies.get("stage_started", [])
    draw = next((event for event in stages if event.stage_started.stage not in BEFORE_THE_DRAW), None)
    for event in bodies.get("action_taken", []):
        action = event.action_taken
        player = _player(players, action.seat)
        if action.kind == table_pb2.ACTION_KIND_FOLD:
            player.folded = True
        elif action.kind in VOLUNTARY_KINDS and (draw is None or _place(event) < _place(draw)):
            player.voluntary = True
    for event in bodies.get("pot_awarded", []):
        for seat, amount in event.pot_awarded.pot.winners.items():
            _player(players, seat).won_minor += amount


def _place(event: event_pb2.TableEvent) -> tuple[int, int]:
    return event.epoch, event.sequence


def _settle(
    summary: Summary,
    bodies: _Bodies,
    ended: event_pb2.HandEnded,
    players: dict[int, PlayerSummary],
) -> None:
    pots = [event.pot_awarded.pot for event in bodies.get("pot_awarded", [])]
    summary.rake_minor = ended.rake_minor
    summary.carry_out_minor = ended.carry_minor
    summary.pot_minor = sum(pot.amount_minor for pot in pots)
    if summary.outcome == table_pb2.HAND_OUTCOME_PASSED_OUT:
        # No pot was made; what lay in the middle is the carry.
        summary.pot_minor = summary.pot_minor or ended.carry_minor
    for player in players.values():
        if player.seat not in ended.stacks_minor:
            raise RecordBrokenError(f"{summary.key.name}: seat {player.seat} has no stack at the end")
        player.net_minor = ended.stacks_minor[player.seat] - player.stack_before_minor
        player.showdown = summary.outcome == table_pb2.HAND_OUTCOME_SHOWDOWN and not player.folded
    # What the seats lost went to the rake and the carry, to the unit; anything else would be a false history.
    lost = -sum(player.net_minor for player in players.values())
    kept = summary.rake_minor + summary.carry_out_minor - summary.carry_in_minor
    if lost != kept:
        raise RecordBrokenError(f"{summary.key.name}: the seats lost {lost}, rake and carry took {kept}")


def _player(players: dict[int, PlayerSummary], seat: int) -> PlayerSummary:
    player = players.get(seat)
    if player is None:
        raise RecordBrokenError(f"seat {seat} acts or wins and was not dealt in")
    return player


def _from_ledger(key: HandKey, record: record_pb2.HandRecord) -> Summary:
    ledger = record.ledger
    if ledger.hand != key.hand:
        raise RecordBrokenError(f"the ledger's hand is {ledger.hand}, not {key.hand}")
    paid = sum(seat.paid_minor for seat in ledger.seats)
    won = sum(seat.won_minor for seat in ledger.seats)
    if not ledger.void and paid + ledger.carry_in_minor != won + ledger.rake_minor + ledger.carry_out_minor:
        raise RecordBrokenError(f"{key.name}: by the ledger {paid} was paid and {won} won")
    outcome = table_pb2.HAND_OUTCOME_VOID if ledger.void else table_pb2.HAND_OUTCOME_UNSPECIFIED
    return Summary(
        key=key,
        epoch=ledger.epoch,
        rulebook=record.table.rulebook.removeprefix("rulebooks/"),
        currency=record.table.currency,
        start_ms=to_ms(ledger.open_time),
        end_ms=to_ms(ledger.close_time),
        outcome=outcome,
        pot_minor=0 if ledger.void else paid + ledger.carry_in_minor,
        rake_minor=ledger.rake_minor,
        carry_in_minor=ledger.carry_in_minor,
        carry_out_minor=ledger.carry_out_minor,
        incomplete=True,
        players=[
            PlayerSummary(
                player=seat.player,
                seat=seat.seat,
                net_minor=0 if ledger.void else seat.won_minor - seat.paid_minor,
                won_minor=0 if ledger.void else seat.won_minor,
            )
            for seat in ledger.seats
        ],
    )
