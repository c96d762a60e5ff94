"""What the console can be told, beyond what every service can."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from services.runtime.settings import SEALING_KEY_BYTES, ServiceSettings


class ConsoleSettings(ServiceSettings):
    """Variables `FIVEDRAW_CONSOLE_…`; `FIVEDRAW_LISTEN` is where the page is served."""

    # 64 hex digits, under which sessions are sealed. Without one each start makes its own and everybody signs in anew.
    console_key: SecretStr = SecretStr("")
    # A prepared action waits so long for its second person.
    console_approval_seconds: int = Field(default=900, ge=30, le=3_600)
    # Open live pages of all people together.
    console_streams_max: int = Field(default=200, ge=1, le=5_000)

    @field_validator("console_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr) -> SecretStr:
        digits = value.get_secret_value()
        try:
            key = bytes.fromhex(digits)
        except ValueError:
            raise ValueError("is not hex") from None
        if key and len(key) != SEALING_KEY_BYTES:
            raise ValueError(f"needs {SEALING_KEY_BYTES} bytes in hex")
        return value
