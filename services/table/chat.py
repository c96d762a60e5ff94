"""Chat at the table: off unless the table has it, and bounded in length and pace."""

from __future__ import annotations

from typing import Final

from fivedraw.table.v1 import event_pb2, table_service_pb2

from services.runtime.errors import Fault
from services.table import asks
from services.table.draft import Draft
from services.table.state import Seat

BURST: Final = 5
WINDOW_MS: Final = 10_000


def say(draft: Draft, ask: asks.Say, seat: Seat) -> None:
    """Tells everybody what a seated player says."""
    state = draft.state
    if not state.settings.chat:
        raise Fault("CHAT_OFF", f"{state.name} has no chat", table=state.name)
    said = [at for at in state.chatted.get(seat.player, ()) if at > draft.now_ms - WINDOW_MS]
    if len(said) >= BURST:
        facts = {"most": str(BURST), "window_ms": str(WINDOW_MS)}
        raise Fault("CHAT_TOO_FAST", f"{BURST} messages in {WINDOW_MS // 1000} s are the most", **facts)
    state.chatted[seat.player] = (*said, draft.now_ms)
    told = event_pb2.ChatSent(seat=seat.number, display_name=seat.display_name, text=ask.text)
    sequence = draft.tell(chat_sent=told)
    draft.answer(ask.request, table_service_pb2.SendChatResponse(sequence=sequence))
