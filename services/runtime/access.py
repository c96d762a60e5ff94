"""Who may call what: one table, from full method names to the principals allowed. What is not listed is denied.

A principal is a role of a person (`player`, `operator`, `finance`, `auditor`), `person` (anybody with a token),
`service:<name>`, or `anyone` (no credentials needed). Whether a player may see or touch *this* object is for the
service to decide; this table says only who may ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.runtime.auth import Identity
from services.runtime.errors import Fault

ANYONE: Final = "anyone"
PERSON: Final = "person"
PLAYER: Final = "player"
OPERATOR: Final = "operator"
# Sees the state of the house, and no player's money.
VIEWER: Final = "viewer"
FINANCE: Final = "finance"
AUDITOR: Final = "auditor"
TABLE: Final = "service:table"
HISTORY: Final = "service:history"
CONSOLE: Final = "service:console"

_BY_SERVICE: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "fivedraw.table.v1.TableService": {
        "ListRulebooks": (PERSON,),
        "CreateTable": (OPERATOR,),
        "GetTable": (PERSON,),
        "ListTables": (PERSON, HISTORY),
        "SitDown": (PLAYER,),
        "TopUp": (PLAYER,),
        "UpdateSeat": (PLAYER,),
        "LeaveTable": (PLAYER,),
        "SubmitAction": (PLAYER,),
        "Play": (PLAYER,),
        "JoinWaitingList": (PLAYER,),
        "LeaveWaitingList": (PLAYER,),
        "PreselectAction": (PLAYER,),
        "SetPlayerSeed": (PLAYER,),
        "SendChat": (PLAYER,),
        "WatchTable": (PERSON,),
        "WatchLobby": (PERSON,),
        "WatchFeed": (PERSON,),
        "PauseTable": (OPERATOR,),
        "ResumeTable": (OPERATOR,),
        "CloseTable": (OPERATOR,),
        "VoidHand": (OPERATOR,),
        "PauseHouse": (OPERATOR,),
        "CreateTemplate": (OPERATOR,),
        "ListTemplates": (OPERATOR,),
        "DeleteTemplate": (OPERATOR,),
    },
    "fivedraw.table.v1.ReplicaService": {
        "ListReplicas": (VIEWER, OPERATOR, AUDITOR),
        "DrainReplica": (OPERATOR,),
    },
    "fivedraw.table.v1.TableLogService": {
        "ReadHandLog": (HISTORY,),
        "ConfirmHandWritten": (HISTORY,),
        "ListUnwrittenHands": (HISTORY,),
    },
    "fivedraw.deck.v1.DeckService": {
        "OpenDeck": (TABLE,),
        "CutDeck": (TABLE,),
        "DealCards": (TABLE,),
        "ExchangeCards": (TABLE,),
        "DealLateCard": (TABLE,),
        "CloseDeck": (TABLE,),
        "FenceTable": (TABLE,),
        "DrawLots": (TABLE,),
        "GetFairnessProof": (HISTORY,),
        "GetRngHealth": (VIEWER, OPERATOR, AUDITOR),
    },
    "fivedraw.wallet.v1.WalletService": {
        "CreatePlayer": (PLAYER, OPERATOR, FINANCE),
        "GetPlayer": (PLAYER, OPERATOR, FINANCE, AUDITOR, TABLE),
        "SetPlayerState": (OPERATOR, FINANCE),
        "SetPlayerLimits": (OPERATOR, FINANCE),
        "Deposit": (OPERATOR, FINANCE),
        "Withdraw": (OPERATOR, FINANCE),
        "AdjustBalance": (OPERATOR, FINANCE),
        "GetBalances": (PLAYER, OPERATOR, FINANCE, AUDITOR),
        "ListEntries": (PLAYER, OPERATOR, FINANCE, AUDITOR),
        "GetHand": (OPERATOR, FINANCE, AUDITOR, TABLE, HISTORY),
        "GetLedgerSummary": (VIEWER, OPERATOR, FINANCE, AUDITOR),
        "GetRakeReport": (OPERATOR, FINANCE, AUDITOR),
        "ListChipsInPlay": (OPERATOR, FINANCE, AUDITOR),
        "ListDormantBalances": (OPERATOR, FINANCE, AUDITOR),
        "AuditLedger": (FINANCE, AUDITOR),
    },
    "fivedraw.wallet.v1.TableLedgerService": {
        "BuyIn": (TABLE,),
        "TopUp": (TABLE,),
        "CashOut": (TABLE,),
        "PostForced": (TABLE,),
        "CollectBets": (TABLE,),
        "AwardPot": (TABLE,),
        "VoidHand": (TABLE,),
        "RefundCarry": (TABLE,),
        "GetTableLedger": (TABLE,),
        "FenceTable": (TABLE,),
    },
    "fivedraw.wallet.v1.ReservationService": {
        "ReserveBuyIn": (TABLE,),
        # The cashier outside the house comes with a token of finance.
        "CommitReservation": (TABLE, FINANCE),
        "ReleaseReservation": (TABLE, FINANCE),
        "GetReservation": (TABLE, OPERATOR, FINANCE, AUDITOR),
        "ListReservations": (TABLE, OPERATOR, FINANCE, AUDITOR),
    },
    "fivedraw.history.v1.HistoryService": {
        "GetHand": (PERSON,),
        "ListHands": (PLAYER, OPERATOR, AUDITOR),
        "ExportHand": (PERSON,),
        "ExportHands": (PLAYER, OPERATOR, AUDITOR),
        "ReplayHand": (PERSON,),
        "GetPlayerStatistics": (PLAYER, OPERATOR, AUDITOR),
        "ListAuditReads": (AUDITOR,),
    },
    "grpc.health.v1.Health": {
        "Check": (ANYONE,),
        "Watch": (ANYONE,),
        "List": (ANYONE,),
    },
    # Served only where the settings allow it.
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": (ANYONE,)},
    "grpc.reflection.v1.ServerReflection": {"ServerReflectionInfo": (ANYONE,)},
}

METHODS: Final[Mapping[str, frozenset[str]]] = {
    f"/{service}/{method}": frozenset(principals)
    for service, methods in _BY_SERVICE.items()
    for method, principals in methods.items()
}


# What undoes or moves what others have won takes two people: both of one of these roles, and not the same person.
TWO_PEOPLE: Final[Mapping[str, frozenset[str]]] = {
    "/fivedraw.table.v1.TableService/VoidHand": frozenset({OPERATOR}),
    "/fivedraw.wallet.v1.WalletService/AdjustBalance": frozenset({OPERATOR, FINANCE}),
}


def check_second(method: str, first: Identity | None, second: Identity | None) -> None:
    """Lets a call through whose second person may stand behind it. Raises `Fault` SECOND_PERSON_REQUIRED."""
    roles = TWO_PEOPLE.get(method)
    if roles is None:
        return
    if second is None:
        raise Fault("SECOND_PERSON_REQUIRED", f"{method} takes two people", method=method)
    if first is None or second.id == first.id or roles.isdisjoint(second.roles):
        raise Fault("SECOND_PERSON_REQUIRED", f"{second.id} cannot be the second person of this call", method=method)


def principals_of(identity: Identity) -> frozenset[str]:
    """The names under which the table may list this caller."""
    if identity.is_service:
        return frozenset({f"service:{identity.id}"})
    return identity.roles | {PERSON}


def check(method: str, identity: Identity | None) -> None:
    """Lets a caller through to a method, or raises `Fault`: UNAUTHENTICATED for nobody, else PERMISSION_DENIED."""
    allowed = METHODS.get(method, frozenset())
    if ANYONE in allowed:
        return
    if identity is None:
        raise Fault("UNAUTHENTICATED", "the call carries no token")
    if allowed.isdisjoint(principals_of(identity)):
        raise Fault("PERMISSION_DENIED", f"{identity.kind} {identity.id} may not call {method}", method=method)
