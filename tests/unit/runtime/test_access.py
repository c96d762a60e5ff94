"""One table says who may call what: every method is in it, and nothing else."""

import importlib

import pytest
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from services.runtime import access
from services.runtime.auth import ROLES, SERVICES, Identity
from services.runtime.errors import Fault

MODULES = [
    importlib.import_module(f"fivedraw.{name}.v1.{name}_service_pb2") for name in ("table", "deck", "wallet", "history")
]


def services() -> list[ServiceDescriptor]:
    return [
        service
        for module in [*MODULES, health_pb2, reflection_pb2]
        for service in module.DESCRIPTOR.services_by_name.values()
    ]


def test_every_method_is_listed():
    methods = {f"/{service.full_name}/{method.name}" for service in services() for method in service.methods}
    assert methods - set(access.METHODS) == set()
    optional = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.health.v1.Health/List"}
    assert set(access.METHODS) - methods - optional == set()


def test_every_principal_exists_and_no_method_of_ours_is_for_anyone():
    known = ROLES | {access.PERSON, access.ANYONE} | {f"service:{name}" for name in SERVICES}
    for method, principals in access.METHODS.items():
        assert principals
        assert principals <= known
        if method.startswith("/fivedraw."):
            assert access.ANYONE not in principals


@pytest.mark.parametrize("method", ["/fivedraw.wallet.v1.WalletService/Mint", "", "/"])
def test_what_is_not_listed_is_denied(method):
    everybody = Identity("person", "root", ROLES)
    with pytest.raises(Fault, match="PERMISSION_DENIED"):
        access.check(method, everybody)


@pytest.mark.parametrize("name", sorted(ROLES | {"person", "anyone", "service:table"}))
def test_a_person_named_like_a_service_is_a_person(name):
    with pytest.raises(Fault, match="PERMISSION_DENIED"):
        access.check("/fivedraw.deck.v1.DeckService/DealCards", Identity("person", name, ROLES))


def test_nobody_is_asked_who_they_are():
    with pytest.raises(Fault, match="UNAUTHENTICATED"):
        access.check("/fivedraw.table.v1.TableService/GetTable", None)
    access.check("/grpc.health.v1.Health/Check", None)
