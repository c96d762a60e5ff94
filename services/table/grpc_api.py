"""The table service's gRPC face: checks requests, asks the table, turns answers into messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import grpc
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc

from services.runtime import tracing
from services.runtime.auth import Identity, current_identity
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer
from services.table import asks, debts, metrics, requests, words
from services.table.house import House
from services.table.lobby import Filter, Lobby, merged
from services.table.log_api import LogApi
from services.table.play_stream import PlayStream
from services.table.registry import Template
from services.table.requests import TEMPLATE_TABLES_MAX
from services.table.state import TableSettings
from services.table.watch import Viewing

ANSWER_SECONDS: Final = 8.0
PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200
FEED_TABLES_MAX: Final = 100
FEED_QUEUE_MAX: Final = 256
UNREACHED_MAX: Final = 100
# Field of UpdateSeat -> what the table calls it.
SEAT_WISHES: Final = {
    "sitting_out": "sitting_out",
    "auto_muck": "auto_muck",
    "wait_for_blind": "wait_for_blind",
    "auto_post": "auto_post",
    "auto_rebuy_minor": "auto_rebuy",
}

Context = grpc.aio.ServicerContext[Any, Any]


class TableApi(rpc.TableServiceServicer):
    """`TableService` of table_service.proto."""

    def __init__(self, house: House, sealer: Sealer) -> None:
        self._house = house
        self._sealer = sealer
        self._lobby = Lobby(house.parts.registry, house.store, house.parts.clock)

    async def ListRulebooks(self, request: pb.ListRulebooksRequest, context: Context) -> pb.ListRulebooksResponse:
        """Lists the rulebooks."""
        books = sorted(self._house.rulebooks.values(), key=lambda book: book.name)
        return pb.ListRulebooksResponse(rulebooks=[words.rulebook(book, TableSettings()) for book in books])

    async def CreateTable(self, request: pb.CreateTableRequest, context: Context) -> pb.CreateTableResponse:
        """Opens a table."""
        state = await self._house.open_table(requests.new_table(current_identity(), request))
        return pb.CreateTableResponse(table=words.table(state))

    async def GetTable(self, request: pb.GetTableRequest, context: Context) -> pb.GetTableResponse:
        """Reads one table as the caller sees it."""
        host = await self._house.host(requests.table_id(request.name, "name"))
        state, deadline_ms = await host.view_state()
        return pb.GetTableResponse(view=words.view(state, requests.viewer_of(current_identity()), deadline_ms))

    async def ListTables(self, request: pb.ListTablesRequest, context: Context) -> pb.ListTablesResponse:
        """Lists tables by name."""
        size = _page_size(request.page_size)
        rulebook, currency = requests.lobby_filter(request.rulebook, request.currency)
        requests.check_stakes(request.min_stake_minor, request.max_stake_minor)
        wanted = Filter(
            rulebook=rulebook,
            currency=currency,
            seats_free=request.seats_free,
            min_stake=request.min_stake_minor,
            max_stake=request.max_stake_minor,
        )
        tables, token = await self._lobby.page(
            requests.page_token(request.page_token), size, wanted, request.show_closed
        )
        return pb.ListTablesResponse(tables=tables, next_page_token=token)

    async def WatchLobby(self, request: pb.WatchLobbyRequest, context: Context) -> AsyncIterator[pb.WatchLobbyResponse]:
        """Watches the lobby."""
        rulebook, currency = requests.lobby_filter(request.rulebook, request.currency)
        async for response in self._lobby.watch(Filter(rulebook=rulebook, currency=currency)):
            yield response

    async def WatchFeed(self, request: pb.WatchFeedRequest, context: Context) -> AsyncIterator[pb.WatchFeedResponse]:
        """Feeds public events of several tables."""
        if not 1 <= len(request.cursors) <= FEED_TABLES_MAX:
            raise requests.invalid("cursors", f"must be 1 to {FEED_TABLES_MAX} tables")
        streams: dict[str, AsyncIterator[pb.WatchTableResponse]] = {}
        for cursor in request.cursors:
            if cursor.table in streams:
                raise requests.invalid("cursors", f"{cursor.table} is named twice")
            watch = pb.WatchTableRequest(table=cursor.table, epoch=cursor.epoch, resume_after=cursor.resume_after)
            # Nobody's eyes: what is private to a seat stays out, whoever the caller is.
            streams[cursor.table] = await self.viewing("", watch)
        async for table, update in merged(streams, FEED_QUEUE_MAX):
            yield pb.WatchFeedResponse(table=table, update=update)

    async def SitDown(self, request: pb.SitDownRequest, context: Context) -> pb.SitDownResponse:
        """Takes a seat."""
        identity = _player()
        asked = requests.request_of(identity, request.request_id, request)
        if not 0 <= request.seat <= words.SEATS_MAX:
            raise requests.invalid("seat", f"must be 0 for any, or 1 to {words.SEATS_MAX}")
        buy_in = requests.amount(request.buy_in_minor, "buy_in_minor")
        table_id = requests.table_id(request.table)
        since_ms = self._house.parts.clock.now_ms() - debts.REENTRY_MS
        left_with = await self._house.parts.registry.left_with(table_id, identity.player, since_ms)
        return pb.SitDownResponse.FromString(
            await self._asked(table_id, asks.SitDown(asked, request.seat, buy_in, left_with))
        )

    async def TopUp(self, request: pb.TopUpRequest, context: Context) -> pb.TopUpResponse:
        """Adds chips to the stack."""
        asked = requests.request_of(_player(), request.request_id, request)
        top_up = asks.TopUp(asked, requests.amount(request.amount_minor, "amount_minor"))
        return pb.TopUpResponse.FromString(await self._asked(requests.table_id(request.table), top_up))

    async def UpdateSeat(self, request: pb.UpdateSeatRequest, context: Context) -> pb.UpdateSeatResponse:
        """Sits out or in, and sets what happens at showdown."""
        asked = requests.request_of(_player(), request.request_id, request)
        wishes = {SEAT_WISHES[field.name]: value for field, value in request.ListFields() if field.name in SEAT_WISHES}
        if not wishes:
            raise requests.invalid("sitting_out", f"nothing to change: set one of {', '.join(SEAT_WISHES)}")
        update = asks.UpdateSeat(asked, **wishes)
        return pb.UpdateSeatResponse.FromString(await self._asked(requests.table_id(request.table), update))

    async def LeaveTable(self, request: pb.LeaveTableRequest, context: Context) -> pb.LeaveTableResponse:
        """Leaves the table."""
        asked = requests.request_of(_player(), request.request_id, request)
        return pb.LeaveTableResponse.FromString(await self._asked(requests.table_id(request.table), asks.Leave(asked)))

    async def JoinWaitingList(self, request: pb.JoinWaitingListRequest, context: Context) -> pb.JoinWaitingListResponse:
        """Joins the waiting list."""
        asked = requests.request_of(_player(), request.request_id, request)
        answer = await self._asked(requests.table_id(request.table), asks.JoinWaiting(asked))
        return pb.JoinWaitingListResponse.FromString(answer)

    async def LeaveWaitingList(
        self, request: pb.LeaveWaitingListRequest, context: Context
    ) -> pb.LeaveWaitingListResponse:
        """Leaves the waiting list."""
        asked = requests.request_of(_player(), request.request_id, request)
        answer = await self._asked(requests.table_id(request.table), asks.LeaveWaiting(asked))
        return pb.LeaveWaitingListResponse.FromString(answer)

    async def PreselectAction(self, request: pb.PreselectActionRequest, context: Context) -> pb.PreselectActionResponse:
        """Chooses an action before the turn."""
        asked = requests.request_of(_player(), request.request_id, request)
        choice = requests.PRESELECTIONS.get(request.preselection)
        if choice is None:
            raise requests.invalid("preselection", "must be one of the preselections")
        if request.hand < 1:
            raise requests.invalid("hand", "must be a hand's number, 1 or more")
        answer = await self._asked(requests.table_id(request.table), asks.Preselect(asked, request.hand, choice))
        return pb.PreselectActionResponse.FromString(answer)

    async def SetPlayerSeed(self, request: pb.SetPlayerSeedRequest, context: Context) -> pb.SetPlayerSeedResponse:
        """Gives entropy for the next shuffle."""
        set_seed = requests.player_seed(_player(), request)
        return pb.SetPlayerSeedResponse.FromString(await self._asked(requests.table_id(request.table), set_seed))

    async def SendChat(self, request: pb.SendChatRequest, context: Context) -> pb.SendChatResponse:
        """Says something at the table."""
        asked = requests.request_of(_player(), request.request_id, request)
        say = asks.Say(asked, requests.chat_text(request.text))
        return pb.SendChatResponse.FromString(await self._asked(requests.table_id(request.table), say))

    async def SubmitAction(self, request: pb.SubmitActionRequest, context: Context) -> pb.SubmitActionResponse:
        """Acts in turn."""
        return await self.act(_player(), request)

    async def act(self, identity: Identity, request: pb.SubmitActionRequest) -> pb.SubmitActionResponse:
        """Acts in turn for a caller that is known already."""
        action = requests.action(identity, request)
        # On a stream a trace begins here: the stream itself lasts too long to be a span.
        with tracing.step("act", request.table, request.hand):
            answer = await self._asked(requests.table_id(request.table), action)
        metrics.ACTIONS.labels(action.kind).inc()
        return pb.SubmitActionResponse.FromString(answer)

    async def Play(
        self, request_iterator: AsyncIterator[pb.PlayRequest], context: Context
    ) -> AsyncIterator[pb.PlayResponse]:
        """Plays over one stream."""
        identity = _player()
        stream = PlayStream(
            lambda action: self.act(identity, action), lambda watch: self.viewing(identity.player, watch)
        )
        async for response in stream.run(request_iterator):
            yield response

    async def WatchTable(self, request: pb.WatchTableRequest, context: Context) -> AsyncIterator[pb.WatchTableResponse]:
        """Watches a table."""
        async for response in await self.viewing(requests.viewer_of(current_identity()), request):
            yield response

    async def viewing(self, player: str, request: pb.WatchTableRequest) -> AsyncIterator[pb.WatchTableResponse]:
        """A player's stream of a table, or with an empty name one that sees no seat's cards.

        Raises `INVALID_REQUEST` or `TABLE_NOT_FOUND` before it begins.
        """
        if request.resume_after < 0 or request.epoch < 0:
            raise requests.invalid("resume_after", "must be a sequence that was told, or 0")
        host = await self._house.host(requests.table_id(request.table))
        viewing = Viewing(host, self._house.store, self._sealer, player, self._house.listen)
        return viewing.stream(request.resume_after, request.epoch)

    async def PauseTable(self, request: pb.PauseTableRequest, context: Context) -> pb.PauseTableResponse:
        """Stops the clocks."""
        asked = requests.request_of(current_identity(), request.request_id, request)
        pause = asks.Pause(asked, requests.reason(request.reason), request.after_hand)
        return pb.PauseTableResponse.FromString(await self._asked(requests.table_id(request.table), pause))

    async def ResumeTable(self, request: pb.ResumeTableRequest, context: Context) -> pb.ResumeTableResponse:
        """Lets the clocks go on."""
        asked = requests.request_of(current_identity(), request.request_id, request)
        return pb.ResumeTableResponse.FromString(
            await self._asked(requests.table_id(request.table), asks.Resume(asked))
        )

    async def CloseTable(self, request: pb.CloseTableRequest, context: Context) -> pb.CloseTableResponse:
        """Finishes the hand and cashes everybody out."""
        asked = requests.request_of(current_identity(), request.request_id, request)
        close = asks.Close(asked, requests.reason(request.reason))
        return pb.CloseTableResponse.FromString(await self._asked(requests.table_id(request.table), close))

    async def VoidHand(self, request: pb.VoidHandRequest, context: Context) -> pb.VoidHandResponse:
        """Undoes the hand being played."""
        identity = current_identity()
        asked = requests.request_of(identity, request.request_id, request)
        if request.hand < 1:
            raise requests.invalid("hand", "must be a hand's number, 1 or more")
        second = f"operators/{identity.approved_by}" if identity.approved_by else ""
        void = asks.Void(asked, request.hand, requests.reason(request.reason), second)
        return pb.VoidHandResponse.FromString(await self._asked(requests.table_id(request.table), void))

    async def PauseHouse(self, request: pb.PauseHouseRequest, context: Context) -> pb.PauseHouseResponse:
        """Pauses every table after its hand, or lets all go on."""
        asked = requests.request_of(current_identity(), request.request_id, request)
        ask: asks.AnyAsk = asks.Resume(asked)
        if not request.resume:
            ask = asks.Pause(asked, requests.reason(request.reason), after_hand=True)
        reached, unreached = await self._house.ask_all(ask, ANSWER_SECONDS)
        return pb.PauseHouseResponse(tables=reached, unreached=unreached[:UNREACHED_MAX])

    async def CreateTemplate(self, request: pb.CreateTemplateRequest, context: Context) -> pb.CreateTemplateResponse:
        """Makes a template."""
        template = requests.new_template(current_identity(), request)
        self._house.check_rulebook(template.rulebook, template.overrides)
        made = await self._house.parts.registry.create_template(template)
        return pb.CreateTemplateResponse(template=await self._template(made))

    async def ListTemplates(self, request: pb.ListTemplatesRequest, context: Context) -> pb.ListTemplatesResponse:
        """Lists templates."""
        size = _page_size(request.page_size)
        page = await self._house.parts.registry.list_templates(requests.page_token(request.page_token), size)
        token = page[-1].template_id if len(page) == size else ""
        return pb.ListTemplatesResponse(
            templates=[await self._template(template) for template in page], next_page_token=token
        )

    async def DeleteTemplate(self, request: pb.DeleteTemplateRequest, context: Context) -> pb.DeleteTemplateResponse:
        """Ends a template."""
        await self._house.parts.registry.delete_template(requests.template_id(request.name))
        return pb.DeleteTemplateResponse()

    async def _template(self, template: Template) -> pb.Template:
        tables = await self._house.parts.registry.tables_of(template.template_id, TEMPLATE_TABLES_MAX)
        book = self._house.check_rulebook(template.rulebook, template.overrides)
        return pb.Template(
            name=f"templates/{template.template_id}",
            rulebook=f"rulebooks/{template.rulebook}",
            currency=template.currency,
            overrides=words.options(book, template.settings),
            spare_tables=template.spare_tables,
            max_tables=template.max_tables,
            open_tables=len(tables),
        )

    async def _asked(self, table_id: str, asked: asks.AnyAsk) -> bytes:
        host = await self._house.host(table_id)
        return await host.ask(asked, ANSWER_SECONDS)


def _player() -> Identity:
    """The caller, who may take a seat: a player who is nothing else in this house. Raises `ROLE_MAY_NOT_SIT`."""
    identity = current_identity()
    others = identity.roles - {"player"}
    if others:
        raise Fault("ROLE_MAY_NOT_SIT", f"{identity.id} is {', '.join(sorted(others))}", roles=",".join(sorted(others)))
    return identity


def _page_size(asked: int) -> int:
    if not 0 <= asked <= PAGE_MAX:
        raise requests.invalid("page_size", f"must be from 0 to {PAGE_MAX}")
    return asked or PAGE_DEFAULT


def register(house: House, sealer: Sealer, server: grpc.aio.Server) -> Sequence[str]:
    """Adds the table's services to a server."""
    rpc.add_TableServiceServicer_to_server(TableApi(house, sealer), server)
    rpc.add_TableLogServiceServicer_to_server(LogApi(house, sealer), server)
    services = pb.DESCRIPTOR.services_by_name
    return [services["TableService"].full_name, services["TableLogService"].full_name]
