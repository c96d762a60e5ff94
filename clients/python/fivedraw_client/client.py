"""A casino as one caller sees it: lobby, seats, play, cash and past hands, over the public API only."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from fivedraw.history.v1 import history_service_pb2, history_service_pb2_grpc
from fivedraw.table.v1 import table_pb2, table_service_pb2, table_service_pb2_grpc
from fivedraw.wallet.v1 import wallet_service_pb2, wallet_service_pb2_grpc

from fivedraw_client.calls import CALL_SECONDS, Caller, Token, new_id
from fivedraw_client.endpoints import Endpoints
from fivedraw_client.retries import RetryPolicy
from fivedraw_client.streams import PlayStream, TableStream

PAGE_SIZE = 200


class Client:
    """One caller's connection. Use it as an async context manager, or await `close()`.

    `token` is a bearer token or a function that returns the present one. `player` is the caller's own name
    (`players/{player}`), by which a stream knows the caller's seat; leave it empty for those who take none. Every
    method raises a `FivedrawError`; those that move chips or change a table carry an id and are repeated with that
    same id, so that they take effect once.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        token: Token,
        *,
        player: str = "",
        policy: RetryPolicy | None = None,
        call_seconds: float = CALL_SECONDS,
        rng: random.Random | None = None,
    ) -> None:
        self.player = player
        self.caller = Caller(
            token, policy=policy or RetryPolicy(), call_seconds=call_seconds, rng=rng or random.Random()
        )
        targets = {endpoints.table, endpoints.wallet, endpoints.history}
        self._channels = {target: endpoints.channel(target) for target in targets}
        self.tables = table_service_pb2_grpc.TableServiceStub(self._channels[endpoints.table])
        self.wallet = wallet_service_pb2_grpc.WalletServiceStub(self._channels[endpoints.wallet])
        self.history = history_service_pb2_grpc.HistoryServiceStub(self._channels[endpoints.history])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; streams that are open end."""
        for channel in self._channels.values():
            await channel.close()

    # Lobby

    async def list_rulebooks(self) -> list[table_pb2.Rulebook]:
        """All rulebooks, by name."""
        answer = await self.caller.call(self.tables.ListRulebooks, table_service_pb2.ListRulebooksRequest())
        return list(answer.rulebooks)

    async def create_table(
        self,
        table_id: str,
        *,
        rulebook: str = "",
        currency: str = "EUR",
        display_name: str = "",
        overrides: table_pb2.GameOptions | None = None,
        request_id: str = "",
    ) -> table_pb2.Table:
        """Opens a table (operators only); `overrides` are the options that differ from the rulebook."""
        request = table_service_pb2.CreateTableRequest(
            request_id=request_id or new_id(),
            table_id=table_id,
            display_name=display_name,
            rulebook=rulebook,
            currency=currency,
            overrides=overrides,
        )
        created: table_pb2.Table = (await self.caller.call(self.tables.CreateTable, request)).table
        return created

    async def get_table(self, table: str) -> table_pb2.TableView:
        """One table (`tables/{table}`) as the caller sees it."""
        request = table_service_pb2.GetTableRequest(name=table)
        view: table_pb2.TableView = (await self.caller.call(self.tables.GetTable, request)).view
        return view

    async def list_tables(self, *, rulebook: str = "", seats_free: bool = False) -> AsyncIterator[table_pb2.Table]:
        """All open tables, by name, page by page."""
        request = table_service_pb2.ListTablesRequest(page_size=PAGE_SIZE, rulebook=rulebook, seats_free=seats_free)
        while True:
            page = await self.caller.call(self.tables.ListTables, request)
            for table in page.tables:
                yield table
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def close_table(self, table: str, reason: str, *, request_id: str = "") -> table_pb2.Table:
        """Finishes the hand, gives a carry back and cashes everybody out (operators only)."""
        request = table_service_pb2.CloseTableRequest(table=table, request_id=request_id or new_id(), reason=reason)
        closed: table_pb2.Table = (await self.caller.call(self.tables.CloseTable, request)).table
        return closed

    # Seats

    async def sit_down(
        self, table: str, buy_in_minor: int, *, seat: int = 0, request_id: str = ""
    ) -> table_pb2.SeatView:
        """Takes a seat (0: any) with a buy-in from the caller's cash."""
        request = table_service_pb2.SitDownRequest(
            table=table, request_id=request_id or new_id(), seat=seat, buy_in_minor=buy_in_minor
        )
        taken: table_pb2.SeatView = (await self.caller.call(self.tables.SitDown, request)).seat
        return taken

    async def top_up(self, table: str, amount_minor: int, *, request_id: str = "") -> table_service_pb2.TopUpResponse:
        """Adds chips to the caller's stack; during a hand they count after it."""
        request = table_service_pb2.TopUpRequest(
            table=table, request_id=request_id or new_id(), amount_minor=amount_minor
        )
        answer: table_service_pb2.TopUpResponse = await self.caller.call(self.tables.TopUp, request)
        return answer

    async def update_seat(
        self, table: str, *, sitting_out: bool | None = None, auto_muck: bool | None = None, request_id: str = ""
    ) -> table_pb2.SeatView:
        """Sits out from the next hand on or comes back, and chooses whether losing hands are mucked."""
        request = table_service_pb2.UpdateSeatRequest(
            table=table, request_id=request_id or new_id(), sitting_out=sitting_out, auto_muck=auto_muck
        )
        seat: table_pb2.SeatView = (await self.caller.call(self.tables.UpdateSeat, request)).seat
        return seat

    async def leave(self, table: str, *, request_id: str = "") -> table_service_pb2.LeaveTableResponse:
        """Leaves: at once between hands, else after the hand."""
        request = table_service_pb2.LeaveTableRequest(table=table, request_id=request_id or new_id())
        answer: table_service_pb2.LeaveTableResponse = await self.caller.call(self.tables.LeaveTable, request)
        return answer

    # Play

    async def act(
        self, table: str, action: table_service_pb2.Action, *, hand: int, turn: int, action_id: str = ""
    ) -> int:
        """Acts in turn; returns the sequence of the action's event."""
        request = table_service_pb2.SubmitActionRequest(
            table=table, hand=hand, turn=turn, action_id=action_id or new_id(), action=action
        )
        sequence: int = (await self.caller.call(self.tables.SubmitAction, request)).sequence
        return sequence

    async def set_player_seed(self, table: str, seed: bytes, *, commitment: bytes, request_id: str = "") -> int:
        """Gives 1 to 64 bytes of one's own for the next shuffle; returns the number of the hand that they go into.

        `commitment` is the view's `seed_commitment`: the house has committed to its own seed before it knows these.
        """
        request = table_service_pb2.SetPlayerSeedRequest(
            table=table, request_id=request_id or new_id(), commitment=commitment, seed=seed
        )
        hand: int = (await self.caller.call(self.tables.SetPlayerSeed, request)).hand
        return hand

    def watch(self, table: str) -> TableStream:
        """A stream of the table as the caller sees it."""
        return TableStream(self.caller, self.tables, table, self.player)

    def play(self, table: str) -> PlayStream:
        """A stream of the table over which the caller acts as well."""
        return PlayStream(self.caller, self.tables, table, self.player)

    # Cash

    async def create_player(
        self, player_id: str, display_name: str, *, request_id: str = ""
    ) -> wallet_service_pb2.Player:
        """Makes a player's profile (a player for itself; operators for anybody)."""
        request = wallet_service_pb2.CreatePlayerRequest(
            request_id=request_id or new_id(), player_id=player_id, display_name=display_name
        )
        player: wallet_service_pb2.Player = (await self.caller.call(self.wallet.CreatePlayer, request)).player
        return player

    async def deposit(
        self, player: str, amount_minor: int, *, currency: str = "EUR", note: str = "", request_id: str = ""
    ) -> int:
        """Moves money into a player's cash (operators and finance); returns the cash afterwards."""
        request = wallet_service_pb2.DepositRequest(
            request_id=request_id or new_id(), player=player, currency=currency, amount_minor=amount_minor, note=note
        )
        amount: int = (await self.caller.call(self.wallet.Deposit, request)).balance.amount_minor
        return amount

    async def balances(self, player: str) -> wallet_service_pb2.GetBalancesResponse:
        """A player's cash and chips on tables, by currency."""
        request = wallet_service_pb2.GetBalancesRequest(player=player)
        answer: wallet_service_pb2.GetBalancesResponse = await self.caller.call(self.wallet.GetBalances, request)
        return answer

    async def ledger_summary(self) -> wallet_service_pb2.GetLedgerSummaryResponse:
        """Totals of the whole ledger (operators, finance, auditors)."""
        request = wallet_service_pb2.GetLedgerSummaryRequest()
        answer: wallet_service_pb2.GetLedgerSummaryResponse = await self.caller.call(
            self.wallet.GetLedgerSummary, request
        )
        return answer

    # Past hands

    async def get_hand(self, hand: str, *, with_proof: bool = False) -> history_service_pb2.Hand:
        """A finished hand (`tables/{table}/hands/{hand}`) as the caller may see it."""
        request = history_service_pb2.GetHandRequest(name=hand, with_proof=with_proof)
        found: history_service_pb2.Hand = (await self.caller.call(self.history.GetHand, request)).hand
        return found

    async def list_hands(
        self, *, table: str = "", player: str = "", limit: int = 0
    ) -> AsyncIterator[history_service_pb2.HandSummary]:
        """Finished hands, newest first, page by page; `limit` above 0 ends the list early."""
        request = history_service_pb2.ListHandsRequest(page_size=PAGE_SIZE, table=table, player=player)
        given = 0
        while True:
            page = await self.caller.call(self.history.ListHands, request)
            for hand in page.hands:
                yield hand
                given += 1
                if given == limit:
                    return
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def export_hand(
        self,
        hand: str,
        form: history_service_pb2.HandFormat.ValueType = history_service_pb2.HAND_FORMAT_TEXT,
        *,
        with_proof: bool = False,
    ) -> str:
        """A finished hand as text; structured JSON may hold its fairness proof, which `fivedraw verify` checks."""
        request = history_service_pb2.ExportHandRequest(name=hand, format=form, with_proof=with_proof)
        text: str = (await self.caller.call(self.history.ExportHand, request)).text
        return text
