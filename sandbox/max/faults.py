"""The faults of one call: those that refuse it, those of the connection, and those after the message is stored."""

import time
from collections import Counter, defaultdict

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import respond_with
from sandbox.max.errors import ApiError, malformed, suspended, too_many_requests, unauthorized
from sandbox.rate_limit import RateLimit

CONNECTION = frozenset({"bad_gateway", "not_json", "denied_with_200", "error_with_200", "timeout", "disconnect_before"})


class Refusals:
    """Refuses the calls of one bot."""

    def __init__(self) -> None:
        self._rate = RateLimit()
        self._dialog_rates: dict[str, RateLimit] = defaultdict(RateLimit)
        self._early: Counter[tuple[str, str]] = Counter()

    def check(self, fault: Fault | None, address: str) -> None:
        """Check a call against a fault. Raises the ApiError of a fault that refuses the call, if it is one."""
        if fault is not None and (refusal := self._refusal(fault, address)) is not None:
            raise refusal

    def _refusal(self, fault: Fault, address: str) -> ApiError | None:
        value = fault.value or 1
        match fault.name:
            case "flood_wait":
                return too_many_requests(value)
            case "rate_limit" | "dialog_rate" as name:
                rate = self._rate if name == "rate_limit" else self._dialog_rates[address]
                return None if rate.accepts(value, time.monotonic()) else too_many_requests()
            case "not_ready" | "not_found_at_first" as name:
                return refusal_of(name, address) if self._is_early(name, address, value) else None
        return refusal_of(fault.name, address)

    def _is_early(self, name: str, address: str, attempts: int) -> bool:
        self._early[name, address] += 1
        return self._early[name, address] <= attempts


def refusal_of(name: str, address: str) -> ApiError | None:
    """Return the refusal that a fault always means; None if it means none."""
    return {
        "too_fast": too_many_requests(),
        "suspended": suspended(address),
        "dialog_not_found": ApiError(404, "dialog.not.found", "Key: error.dialog.notfound, args: []"),
        "not_found_at_first": ApiError(404, "dialog.not.found", "Key: error.dialog.notfound, args: []"),
        "chat_not_found": ApiError(404, "chat.not.found", f"Chat {address} not found"),
        "bad_payload": malformed("Invalid message body"),
        "not_ready": ApiError(400, "attachment.not.ready", "Key: errors.process.attachment.file.not.processed"),
        "method_not_allowed": ApiError(405, "method.not.allowed", "Method not allowed"),
        "unauthorized": unauthorized(),
        "busy": ApiError(503, "service.unavailable", "Service unavailable"),
        "server_error": ApiError(500, "internal.error", "Internal server error"),
    }.get(name)


async def respond(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Respond with a failure that is not a refusal of the API."""
    match fault.name:
        case "denied_with_200":
            return web.json_response(suspended("").body())
        case "error_with_200":
            return web.json_response({"code": "internal.error", "message": "Internal server error"})
    error = ApiError(500, "internal.error", "Internal server error")
    return await respond_with(request, fault.name, error.response())
