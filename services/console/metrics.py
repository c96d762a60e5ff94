"""What the console measures."""

from __future__ import annotations

from typing import Final

from services.runtime import telemetry

REQUESTS: Final = telemetry.counter("fivedraw_console_requests_total", "Requests answered, by status.", ("code",))
STREAMS: Final = telemetry.gauge("fivedraw_console_streams", "Live pages open now.")
ACTIONS: Final = telemetry.counter("fivedraw_console_actions_total", "Actions by outcome.", ("action", "outcome"))
AUDIT_LOG_BROKEN: Final = telemetry.gauge(
    "fivedraw_console_audit_log_broken", "1 once the audit log was found changed outside of the console."
)
