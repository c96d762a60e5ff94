"""Between machines: mutual TLS, in which a certificate's common name is what makes a service."""

import asyncio
import ssl
import urllib.error
import urllib.request

import grpc
import pytest
from fivedraw.history.v1 import history_service_pb2 as history
from fivedraw.history.v1 import history_service_pb2_grpc as history_grpc
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as wallet_grpc

from services.runtime.auth import current_identity, service_proof
from services.runtime.channel import connect
from tests.certificates import Authority
from tests.servers import SERVICE_KEY


class Ledgers(wallet_grpc.TableLedgerServiceServicer):
    async def GetTableLedger(self, request, context):
        assert (current_identity().kind, current_identity().id) == ("service", "table")
        return wallet.GetTableLedgerResponse()


class Histories(history_grpc.HistoryServiceServicer):
    async def GetHand(self, request, context):
        assert current_identity().kind == "person"
        return history.GetHandResponse()


def register(server):
    wallet_grpc.add_TableLedgerServiceServicer_to_server(Ledgers(), server)
    history_grpc.add_HistoryServiceServicer_to_server(Histories(), server)
    return ["fivedraw.wallet.v1.TableLedgerService"]


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def server(serve, make_settings, authority):
    return await serve(make_settings(**authority.issue("wallet")), register, with_metrics=True)


async def ledger_as(server, settings, **options) -> grpc.StatusCode:
    async with connect(f"localhost:{server.port}", settings, **options) as channel:
        try:
            await wallet_grpc.TableLedgerServiceStub(channel).GetTableLedger(wallet.GetTableLedgerRequest(), timeout=3)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def test_a_certificate_makes_a_service(server, authority, make_settings):
    assert await ledger_as(server, make_settings(**authority.issue("table"))) == grpc.StatusCode.OK


async def test_another_certificate_makes_another_service(server, authority, make_settings):
    settings = make_settings(**authority.issue("history"))
    assert await ledger_as(server, settings) == grpc.StatusCode.PERMISSION_DENIED


async def test_the_proxy_is_nobody_even_with_a_proof(server, authority, make_settings):
    settings = make_settings(**authority.issue("proxy"))
    proof = [("x-fivedraw-service", "table"), ("x-fivedraw-service-proof", service_proof(SERVICE_KEY, "table"))]
    assert await ledger_as(server, settings, metadata=proof) == grpc.StatusCode.UNAUTHENTICATED


async def test_a_person_behind_a_service_is_a_person(server, authority, make_settings, token):
    settings = make_settings(**authority.issue("table"))
    bearer = [("authorization", f"Bearer {token('alice', 'player')}")]
    assert await ledger_as(server, settings, metadata=bearer) == grpc.StatusCode.PERMISSION_DENIED
    async with connect(f"localhost:{server.port}", settings, metadata=bearer) as channel:
        await history_grpc.HistoryServiceStub(channel).GetHand(history.GetHandRequest())


async def test_a_stranger_does_not_get_in(server, make_settings, tmp_path_factory):
    strangers = Authority(tmp_path_factory.mktemp("strangers"))
    assert await ledger_as(server, make_settings(**strangers.issue("table"))) == grpc.StatusCode.UNAVAILABLE


async def test_plaintext_does_not_get_in(server, make_settings):
    assert await ledger_as(server, make_settings(), as_service="table") == grpc.StatusCode.UNAVAILABLE


def test_no_channel_leaves_the_machine_in_plaintext(make_settings):
    with pytest.raises(ValueError, match="loopback"):
        connect("wallet.example.org:7103", make_settings())


async def test_metrics_need_a_certificate_too(server, authority):

    paths = authority.issue("prometheus")
    context = ssl.create_default_context(cafile=str(authority.ca_file))

    def scrape() -> int:
        url = f"https://localhost:{server.metrics_port}/metrics"
        with urllib.request.urlopen(url, context=context, timeout=3) as response:
            return response.status

    with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
        await asyncio.to_thread(scrape)
    context.load_cert_chain(paths["tls_cert"], paths["tls_key"])
    assert await asyncio.to_thread(scrape) == 200
