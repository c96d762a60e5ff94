"""Every call passes the gate: identity, access, deadlines, streams' ends, typed refusals, and what is counted."""

import asyncio
import contextlib
import json

import grpc
import pytest
from fivedraw.history.v1 import history_service_pb2 as history
from fivedraw.history.v1 import history_service_pb2_grpc as history_grpc
from fivedraw.table.v1 import table_service_pb2 as table
from fivedraw.table.v1 import table_service_pb2_grpc as table_grpc
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as wallet_grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from prometheus_client import REGISTRY

from services.runtime.auth import current_identity
from services.runtime.errors import Fault

SECRET = "the deck holds Ah Kh Qh"


class Histories(history_grpc.HistoryServiceServicer):
    async def GetHand(self, request, context):
        match request.name:
            case "fault":
                raise Fault("HAND_NOT_FOUND", "tables/a has no hand 7", hand="7")
            case "bug":
                raise ValueError(SECRET)
            case "abort":
                await context.abort(grpc.StatusCode.DATA_LOSS, "as asked")
            case "slow":
                await asyncio.sleep(30)
            case "timeout":
                raise TimeoutError("of a store")
        return history.GetHandResponse()


class Tables(table_grpc.TableServiceServicer):
    def __init__(self):
        self.ended = asyncio.Event()
        self.callers = []

    async def WatchTable(self, request, context):
        self.callers.append(current_identity())
        try:
            while True:
                yield table.WatchTableResponse()
                await asyncio.sleep(0.02)
        finally:
            self.ended.set()

    async def Play(self, request_iterator, context):
        async for _ in request_iterator:
            await context.write(table.PlayResponse())

    async def VoidHand(self, request, context):
        self.callers.append(current_identity())
        return table.VoidHandResponse()

    async def GetTable(self, request, context):
        identity = current_identity()
        self.callers.append(identity)
        return table.GetTableResponse()


class Ledgers(wallet_grpc.TableLedgerServiceServicer):
    async def GetTableLedger(self, request, context):
        identity = current_identity()
        assert (identity.kind, identity.id) == ("service", "table")
        return wallet.GetTableLedgerResponse()


def register(server):
    history_grpc.add_HistoryServiceServicer_to_server(Histories(), server)
    wallet_grpc.add_TableLedgerServiceServicer_to_server(Ledgers(), server)
    server.tables = Tables()
    table_grpc.add_TableServiceServicer_to_server(server.tables, server)
    return ["fivedraw.history.v1.HistoryService", "fivedraw.table.v1.TableService"]


@pytest.fixture
async def server(serve, make_settings):
    return await serve(make_settings(unary_timeout_ms=300, streams_per_caller_max=2), register)


async def failure(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_person_is_known_by_their_token(server, channel, token):
    stub = table_grpc.TableServiceStub(channel(server, token=token("alice", "player", "wizard")))
    await stub.GetTable(table.GetTableRequest())
    identity = server._server.tables.callers[-1]
    assert (identity.kind, identity.id, identity.roles, identity.player) == (
        "person",
        "alice",
        frozenset({"player"}),
        "players/alice",
    )


async def test_nobody_gets_nothing(server, channel):
    error = await failure(history_grpc.HistoryServiceStub(channel(server)).GetHand(history.GetHandRequest()))
    assert error.code() == grpc.StatusCode.UNAUTHENTICATED
    assert Fault.from_rpc(error).reason == "UNAUTHENTICATED"


@pytest.mark.parametrize("roles", [("operator",), ("player", "finance", "auditor"), ()])
async def test_no_person_reaches_a_method_of_services(server, channel, token, roles):
    stub = wallet_grpc.TableLedgerServiceStub(channel(server, token=token("table", *roles)))
    error = await failure(stub.GetTableLedger(wallet.GetTableLedgerRequest()))
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_a_service_is_known_by_its_proof(server, channel):
    stub = wallet_grpc.TableLedgerServiceStub(channel(server, as_service="table"))
    await stub.GetTableLedger(wallet.GetTableLedgerRequest())


async def test_a_service_reaches_only_what_is_listed_for_it(server, channel):
    stub = wallet_grpc.TableLedgerServiceStub(channel(server, as_service="history"))
    error = await failure(stub.GetTableLedger(wallet.GetTableLedgerRequest()))
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_a_wrong_proof_is_refused(server, channel):
    stub = wallet_grpc.TableLedgerServiceStub(channel(server))
    metadata = [("x-fivedraw-service", "table"), ("x-fivedraw-service-proof", "0" * 64)]
    error = await failure(stub.GetTableLedger(wallet.GetTableLedgerRequest(), metadata=metadata))
    assert error.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_beside_a_proof_makes_a_person(server, channel, token):
    stub = wallet_grpc.TableLedgerServiceStub(channel(server, as_service="table", token=token("alice", "player")))
    error = await failure(stub.GetTableLedger(wallet.GetTableLedgerRequest()))
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_a_refusal_carries_its_reason_and_facts(server, channel, token):
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice", "player")))
    error = await failure(stub.GetHand(history.GetHandRequest(name="fault")))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details() == "tables/a has no hand 7: check the table and the hand's number"
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == ("HAND_NOT_FOUND", "fivedraw", {"hand": "7"})
    fault = Fault.from_rpc(error)
    assert (fault.reason, fault.message, fault.metadata) == ("HAND_NOT_FOUND", "tables/a has no hand 7", {"hand": "7"})


@pytest.mark.parametrize("name", ["bug", "timeout"])
async def test_a_mistake_of_the_house_tells_nothing_and_is_counted(server, channel, token, name, capsys):
    method = "/fivedraw.history.v1.HistoryService/GetHand"
    before = count("fivedraw_rpc_unexpected_total", method=method)
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice", "player")))
    error = await failure(stub.GetHand(history.GetHandRequest(name=name)))
    assert error.code() == grpc.StatusCode.INTERNAL
    assert SECRET not in error.details()
    assert "Ah" not in str(error.trailing_metadata())
    assert Fault.from_rpc(error).metadata["incident"] in error.details()
    assert count("fivedraw_rpc_unexpected_total", method=method) == before + 1
    output = capsys.readouterr()
    assert SECRET not in output.out + output.err


async def test_a_handler_may_abort_by_itself(server, channel, token):
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice", "player")))
    error = await failure(stub.GetHand(history.GetHandRequest(name="abort")))
    assert (error.code(), error.details()) == (grpc.StatusCode.DATA_LOSS, "as asked")


async def test_every_unary_call_has_an_end(server, channel, token):
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice", "player")))
    error = await failure(stub.GetHand(history.GetHandRequest(name="slow"), timeout=20))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert Fault.from_rpc(error).reason == "DEADLINE_EXCEEDED"


async def test_calls_are_counted_by_method_and_status(server, channel, token):
    labels = {"method": "/fivedraw.history.v1.HistoryService/GetHand", "code": "OK"}
    before = count("fivedraw_rpc_total", **labels)
    await history_grpc.HistoryServiceStub(channel(server, token=token("alice"))).GetHand(history.GetHandRequest())
    assert count("fivedraw_rpc_total", **labels) == before + 1


async def test_a_large_request_is_refused(server, channel, token):
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice")))
    error = await failure(stub.GetHand(history.GetHandRequest(name="x" * 100_000)))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_streams_work_both_ways(server, channel, token):
    stub = table_grpc.TableServiceStub(channel(server, token=token("alice", "player")))
    call = stub.Play()
    for _ in range(3):
        await call.write(table.PlayRequest())
        assert isinstance(await call.read(), table.PlayResponse)
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK


async def test_a_caller_has_a_bounded_number_of_streams(server, channel, token):
    stub = table_grpc.TableServiceStub(channel(server, token=token("alice", "player")))
    calls = [stub.WatchTable(table.WatchTableRequest()) for _ in range(2)]
    for call in calls:
        await call.read()
    third = stub.WatchTable(table.WatchTableRequest())
    error = await failure(third.read())
    assert Fault.from_rpc(error).reason == "TOO_MANY_STREAMS"
    other = table_grpc.TableServiceStub(channel(server, token=token("bob", "player"))).WatchTable(
        table.WatchTableRequest()
    )
    await other.read()
    calls[0].cancel()
    await asyncio.wait_for(server._server.tables.ended.wait(), 5)
    for _ in range(100):
        again = stub.WatchTable(table.WatchTableRequest())
        with contextlib.suppress(grpc.aio.AioRpcError):
            assert isinstance(await again.read(), table.WatchTableResponse)
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("the closed stream still counts")
    for call in (calls[1], other, again):
        call.cancel()


async def test_a_stream_ends_with_its_token(server, channel, token):
    # Expiry has a resolution of one second.
    stub = table_grpc.TableServiceStub(channel(server, token=token("alice", "player", lifetime_seconds=2)))
    call = stub.WatchTable(table.WatchTableRequest())

    async def read_all():
        async for _ in call:
            pass

    error = await failure(asyncio.wait_for(read_all(), 10))
    assert Fault.from_rpc(error).reason == "UNAUTHENTICATED"
    assert server._server.tables.ended.is_set()


async def test_a_stop_ends_streams_with_a_reason_and_lets_calls_finish(serve, make_settings, channel, token):
    server = await serve(make_settings(), register)
    stub = table_grpc.TableServiceStub(channel(server, token=token("alice", "player")))
    call = stub.WatchTable(table.WatchTableRequest())
    await call.read()
    stopping = asyncio.create_task(server.stop())

    async def read_all():
        while await call.read() is not grpc.aio.EOF:
            pass

    error = await failure(asyncio.wait_for(read_all(), 5))
    assert Fault.from_rpc(error).reason == "SERVICE_UNAVAILABLE"
    await asyncio.wait_for(stopping, 5)


async def test_health_needs_no_token(server, channel):
    stub = health_pb2_grpc.HealthStub(channel(server))
    for service in ("", "fivedraw.history.v1.HistoryService"):
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert response.status == health_pb2.HealthCheckResponse.SERVING


async def reflected(channel) -> list[str]:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = [reflection_pb2.ServerReflectionRequest(list_services="")]
    async for response in stub.ServerReflectionInfo(iter(requests)):
        return [each.name for each in response.list_services_response.service]
    return []


async def test_reflection_lists_the_services(server, channel):
    assert {"fivedraw.history.v1.HistoryService", "fivedraw.table.v1.TableService"} <= set(
        await reflected(channel(server))
    )


async def test_reflection_can_be_off(serve, make_settings, channel):
    server = await serve(make_settings(reflection=False), register)
    error = await failure(reflected(channel(server)))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_method_that_is_not_served_is_unimplemented(server, channel, token):
    stub = wallet_grpc.WalletServiceStub(channel(server, token=token("alice", "player")))
    error = await failure(stub.GetBalances(wallet.GetBalancesRequest()))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_metrics_are_served_over_http(serve, make_settings):
    server = await serve(make_settings(), register, with_metrics=True)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    body = (await reader.read()).decode()
    writer.close()
    assert body.startswith("HTTP/1.0 200")
    assert 'fivedraw_service_up{service="test"} 1.0' in body


async def test_two_servers_cannot_share_a_port(server, serve, make_settings):
    with pytest.raises(OSError, match=str(server.port)):
        await serve(make_settings(listen=f"127.0.0.1:{server.port}"), register)


async def test_calls_wait_for_a_server_that_comes_back(serve, make_settings, channel, token):
    server = await serve(make_settings(), register)
    stub = history_grpc.HistoryServiceStub(channel(server, token=token("alice")))
    await stub.GetHand(history.GetHandRequest())
    port = server.port
    await server.stop()
    error = await failure(stub.GetHand(history.GetHandRequest()))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    await serve(make_settings(listen=f"127.0.0.1:{port}"), register)
    await stub.GetHand(history.GetHandRequest(), wait_for_ready=True, timeout=5)


def test_the_service_config_is_json():
    from services.runtime.channel import SERVICE_CONFIG  # noqa: PLC0415

    assert json.loads(SERVICE_CONFIG)["methodConfig"][0]["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE"]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (None, "SECOND_PERSON_REQUIRED"),
        (("olga", "operator"), "SECOND_PERSON_REQUIRED"),
        (("ann", "player"), "SECOND_PERSON_REQUIRED"),
        (("ada", "auditor", "finance"), "SECOND_PERSON_REQUIRED"),
        ("rubbish", "UNAUTHENTICATED"),
        (("otto", "operator"), None),
    ],
)
async def test_a_hand_is_voided_by_two_operators_and_by_nobody_less(server, channel, token, second, reason):
    stub = table_grpc.TableServiceStub(channel(server, token=token("olga", "operator")))
    shown = token(*second) if isinstance(second, tuple) else second
    metadata = [("x-fivedraw-second-token", shown)] if shown else []
    call = stub.VoidHand(table.VoidHandRequest(), metadata=metadata)
    if reason is None:
        await call
    else:
        assert Fault.from_rpc(await failure(call)).reason == reason


async def test_a_house_may_do_without_the_second_person(serve, make_settings, channel, token):
    server = await serve(make_settings(two_people=False), register)
    stub = table_grpc.TableServiceStub(channel(server, token=token("olga", "operator")))
    await stub.VoidHand(table.VoidHandRequest())
