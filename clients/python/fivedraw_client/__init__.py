"""The Python client of a fivedraw casino: asyncio, typed errors, streams that resume without gaps."""

from fivedraw_client.calls import Token, new_id
from fivedraw_client.client import Client
from fivedraw_client.endpoints import Endpoints
from fivedraw_client.errors import (
    ConflictError,
    FivedrawError,
    HouseError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    OverloadedError,
    RefusedError,
    StaleError,
    StreamViolationError,
    UnavailableError,
)
from fivedraw_client.mirror import TableMirror
from fivedraw_client.retries import RetryPolicy
from fivedraw_client.sequence import Position, SequenceKeeper
from fivedraw_client.streams import PlayStream, TableStream, Update

__all__ = [
    "Client",
    "ConflictError",
    "Endpoints",
    "FivedrawError",
    "HouseError",
    "InvalidRequestError",
    "NotAllowedError",
    "NotFoundError",
    "OverloadedError",
    "PlayStream",
    "Position",
    "RefusedError",
    "RetryPolicy",
    "SequenceKeeper",
    "StaleError",
    "StreamViolationError",
    "TableMirror",
    "TableStream",
    "Token",
    "UnavailableError",
    "Update",
    "new_id",
]
