"""Whatever comes in over any RPC of any service is answered with a reason, changes nothing, and harms nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest
import pytest_asyncio
from fivedraw.table.v1 import table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2
from google.protobuf.duration_pb2 import Duration

from services.runtime import access
from services.runtime.errors import REASONS, Fault
from tests import servers
from tests.integration.table.house import SERVICES, RunningHouse
from tests.integration.table.requests import Rpc, all_rpcs, garbage, plausible

RPCS = all_rpcs()
CALLS_AT_ONCE = 16
REFUSED_WITHIN_SECONDS = 0.5
STREAM_SECONDS = 10
# Nobody may cause these, whatever they send.
OURS = {"INTERNAL"}


class Caller:
    """Calls any RPC as any principal of the access table."""

    def __init__(self, house: RunningHouse, channel: Any, token: Any) -> None:
        self._channels: dict[tuple[str, str], grpc.aio.Channel] = {}
        self._channel = channel
        self._token = token
        self._seconded = house.seconded
        self.servers = {
            "table": house.processes[0].server,
            "wallet": house.wallet_server,
            "deck": house.deck_server,
            "history": house.history_server,
        }

    def channel(self, service: str, principal: str) -> grpc.aio.Channel:
        """A channel with the credentials of a principal: a role, `person`, `service:name`, or `` for nobody."""
        key = service, principal
        if key not in self._channels:
            kind, _, name = principal.partition(":")
            if kind == "service":
                opened = self._channel(self.servers[service], as_service=name)
            elif not principal:
                opened = self._channel(self.servers[service])
            else:
                role = "player" if principal == "person" else principal
                who = "ann" if role == "player" else f"some-{role}"
                opened = self._channel(self.servers[service], token=self._token(who, role))
                # Behind the calls of operators and finance stands a second person, where that is asked for.
                opened._metadata += self._seconded if role in ("operator", "finance") else ()
            self._channels[key] = opened
        return self._channels[key]

    async def outcome(self, rpc: Rpc, request: Any, channel: grpc.aio.Channel) -> str:
        """The reason of the refusal, `OK`, or the bare status where there is no reason."""
        raw = isinstance(request, bytes)
        serialize = (lambda given: given) if raw else rpc.request_type.SerializeToString
        try:
            if rpc.method.client_streaming:
                stream = channel.stream_stream(rpc.path, serialize, rpc.response_type.FromString)(
                    timeout=STREAM_SECONDS
                )
                # Who may not call is told before the first message; writing to a call that has ended would replace what
                # the server said by an error of this side.
                reading = asyncio.ensure_future(stream.read())
                await asyncio.wait({reading}, timeout=REFUSED_WITHIN_SECONDS)
                if not reading.done():
                    await stream.write(request)
                await reading
                stream.cancel()
            elif rpc.method.server_streaming:
                stream = channel.unary_stream(rpc.path, serialize, rpc.response_type.FromString)(
                    request, timeout=STREAM_SECONDS
                )
                await stream.read()
                stream.cancel()
            else:
                await channel.unary_unary(rpc.path, serialize, rpc.response_type.FromString)(request)
        except grpc.aio.AioRpcError as error:
            fault = Fault.from_rpc(error)
            return fault.reason if fault is not None else error.code().name
        return "OK"


def entitled(rpc: Rpc) -> list[str]:
    """Who may call it."""
    return sorted(access.METHODS[rpc.path])


@pytest_asyncio.fixture
async def house(request: pytest.FixtureRequest, open_house) -> AsyncIterator[RunningHouse]:
    """A house on SQLite, or on the kind of database that a test is parametrised with."""
    with ExitStack() as stack:
        urls = None
        if getattr(request, "param", "sqlite") == "postgresql":
            server = request.getfixturevalue("postgres_server_url")
            urls = {name: stack.enter_context(servers.postgres_database(server)) for name in SERVICES}
        yield await open_house(urls)


@pytest.fixture
def caller(house: RunningHouse, channel, token) -> Caller:
    return Caller(house, channel, token)


async def standing(house: RunningHouse) -> tuple[Any, ...]:
    """All that garbage might change: the table as it stands, and the money."""
    view = await house.view("oak")
    view.ClearField("turn")
    summary = await house.wallet("olga", "operator").GetLedgerSummary(wallet_service_pb2.GetLedgerSummaryRequest())
    return view.sequence, view.SerializeToString(deterministic=True), summary.SerializeToString(deterministic=True)


@pytest_asyncio.fixture
async def playing(house: RunningHouse) -> RunningHouse:
    """Ann (seat 1) and bob (seat 2) are in a hand at `oak`."""
    await house.open_table("oak", cut=False, action_clock=Duration(seconds=120))
    await house.seat("oak", "ann", "bob")
    await house.turn("oak", ["ann", "bob"])
    return house


async def lives(house: RunningHouse) -> None:
    """The money is right, and another table plays a hand."""
    assert await house.faults() == []
    await house.open_table("elm")
    await house.seat("elm", "cid", "dan")
    await house.play_hand("elm", "cid", "dan")
    assert await house.faults() == []


@pytest.mark.parametrize("house", ["sqlite", "postgresql"], indirect=True)
async def test_every_field_of_every_rpc_given_garbage_is_answered_with_a_reason(playing, caller) -> None:
    places = asyncio.Semaphore(CALLS_AT_ONCE)
    wrong: list[str] = []
    seen: Counter[str] = Counter()

    async def one(rpc: Rpc, principal: str, what: str, request: Any) -> None:
        async with places:
            outcome = await caller.outcome(rpc, request, caller.channel(rpc.service, principal))
        seen[outcome] += 1
        if outcome != "OK" and (outcome not in REASONS or outcome in OURS):
            wrong.append(f"{rpc.path} as {principal}, {what}: {outcome}")

    for rpc in RPCS:
        principal = entitled(rpc)[0]
        await asyncio.gather(*(one(rpc, principal, what, request) for what, request in garbage(rpc)))
    assert wrong == []
    assert seen["INVALID_REQUEST"] > 500, seen
    await lives(playing)


# Calls that, where they are well formed, change a table at once and set nothing in motion that goes on afterwards.
SETTLED = (
    *("SitDown", "TopUp", "UpdateSeat", "JoinWaitingList", "LeaveWaitingList", "PreselectAction", "SendChat"),
    *("SubmitAction", "PauseTable", "ResumeTable", "CreateTable", "CreateTemplate"),
)


async def test_what_is_refused_changes_nothing(playing, caller) -> None:
    before = await standing(playing)
    refused = 0
    for rpc in RPCS:
        if rpc.service != "table" or rpc.method.name not in SETTLED:
            continue
        channel = caller.channel(rpc.service, entitled(rpc)[0])
        for what, request in garbage(rpc):
            if await caller.outcome(rpc, request, channel) == "OK":
                before = await standing(playing)
            else:
                refused += 1
                assert await standing(playing) == before, (rpc.path, what)
    assert refused > 200


async def test_who_may_not_call_gets_nothing(playing, caller) -> None:
    before = await standing(playing)
    principals = sorted({each for allowed in access.METHODS.values() for each in allowed} - {access.ANYONE})
    wrong = []
    for rpc in RPCS:
        allowed = access.METHODS[rpc.path]
        for principal in ["", *principals]:
            is_person = bool(principal) and not principal.startswith("service:")
            if principal in allowed or (access.PERSON in allowed and is_person):
                continue
            if principal == access.PERSON and access.PLAYER in allowed:
                continue  # the person of these tests is a player
            outcome = await caller.outcome(rpc, plausible(rpc), caller.channel(rpc.service, principal))
            expected = "PERMISSION_DENIED" if principal else "UNAUTHENTICATED"
            if outcome != expected:
                wrong.append(f"{rpc.path} as {principal or 'nobody'}: {outcome}")
    assert wrong == []
    assert await standing(playing) == before


@pytest.mark.parametrize("credentials", ["expired", "forged", "not a token", "service by name alone"])
async def test_credentials_that_are_none(playing, caller, channel, token, credentials) -> None:
    tokens = {
        "expired": token("ann", "player", lifetime_seconds=-60),
        "forged": token("ann", "player")[:-8] + "AAAAAAAA",
        "not a token": "x" * 3_000,
        "service by name alone": None,
    }
    for rpc in RPCS:
        opened = channel(caller.servers[rpc.service], token=tokens[credentials])
        if credentials == "service by name alone":
            opened._metadata = (("x-fivedraw-service", "table"), ("x-fivedraw-service-proof", "00" * 32))
        assert await caller.outcome(rpc, plausible(rpc), opened) == "UNAUTHENTICATED", rpc.path


async def test_nobody_acts_from_anothers_seat(playing) -> None:
    """The seat follows from the token: what bob sends in ann's turn is bob's, and carol has none."""
    player, view = await playing.turn("oak", ["ann", "bob"])
    other = "bob" if player == "ann" else "ann"
    await playing.make_player("carol")
    for who, reason in ((other, "NOT_YOUR_TURN"), ("carol", "NOT_SEATED")):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await playing.stub(who).SubmitAction(playing.action("oak", view))
        assert Fault.from_rpc(caught.value).reason == reason
    await playing.act("oak", player, view)


async def test_operators_take_no_seat(playing, token, channel) -> None:
    for who, *roles in (("olga", "player", "operator"), ("ada", "auditor", "player")):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await playing.stub(who, *roles).SitDown(
                table_service_pb2.SitDownRequest(table="tables/oak", request_id="r", buy_in_minor=500)
            )
        assert Fault.from_rpc(caught.value).reason == "ROLE_MAY_NOT_SIT"


async def test_messages_that_cannot_be_read_or_are_too_long(playing, caller) -> None:
    for rpc in RPCS:
        channel = caller.channel(rpc.service, entitled(rpc)[0])
        assert await caller.outcome(rpc, b"\xff\xff\xff\x0f garbage", channel) == "INVALID_REQUEST", rpc.path
    for rpc in {rpc.service: rpc for rpc in RPCS if not rpc.method.server_streaming}.values():
        # gRPC itself refuses these before anybody of ours sees them, hence without a reason of ours.
        channel = caller.channel(rpc.service, entitled(rpc)[0])
        assert await caller.outcome(rpc, bytes(70_000), channel) == "RESOURCE_EXHAUSTED", rpc.path
    await lives(playing)
