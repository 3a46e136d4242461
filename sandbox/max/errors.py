"""Errors of the Bot API: a status, and a body with `code` and `message`."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web


class ApiError(Exception):
    """A refusal. A refused call stores nothing."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers or {}

    def response(self) -> web.Response:
        return web.json_response(self.body(), status=self.status, headers=self.headers)

    def body(self) -> dict[str, Any]:
        return {"code": self.code, "message": str(self)}


def malformed(message: str) -> ApiError:
    """Return the refusal of a request that is not as the schema has it."""
    return ApiError(400, "proto.payload", message)


def unauthorized(message: str = "Invalid access_token") -> ApiError:
    return ApiError(401, "verify.token", message)


def suspended(address: str) -> ApiError:
    """Return the refusal of a person who has stopped the bot."""
    return ApiError(403, "chat.denied", f"Key: error.dialog.suspended, args: [{address}]")


def too_many_requests(seconds: int | None = None) -> ApiError:
    """Return the refusal of a call beyond a limit; `seconds`: of the header Retry-After, None for none."""
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    return ApiError(429, "too.many.requests", "Too many requests", headers)
