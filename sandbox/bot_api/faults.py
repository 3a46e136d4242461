"""The faults of one call: those that refuse it, those of the connection, and those after the message is stored."""

import time

from aiohttp import web

from sandbox.bot_api.state.bot import CHANNEL, Bot
from sandbox.bot_api.state.errors import UNAUTHORIZED, ApiError, bad_request, forbidden, migrated, too_many_requests
from sandbox.events import Fault
from sandbox.http_listener import respond_with

CONNECTION = frozenset({"bad_gateway", "not_json", "timeout", "disconnect_before"})
REFUSALS = {
    "blocked": forbidden("bot was blocked by the user"),
    "deactivated": forbidden("user is deactivated"),
    "cannot_initiate": forbidden("bot can't initiate conversation with a user"),
    "kicked": forbidden("bot was kicked from the group chat"),
    "chat_not_found": bad_request("chat not found"),
    "no_rights": bad_request("not enough rights to send text messages to the chat"),
    "unauthorized": ApiError(401, UNAUTHORIZED),
    "server_error": ApiError(500, "Internal Server Error"),
}
_SUPERGROUPS = -1_000_000_000_000


def check_refused(bot: Bot, fault: Fault | None, address: str) -> None:
    """Raise the ApiError of a fault that refuses the call, if it is one. A refused call stores nothing."""
    match fault:
        case Fault("flood_wait", seconds):
            raise too_many_requests(seconds or 1)
        case Fault("rate_limit", calls):
            _check_rate(bot, calls or 1)
        case Fault("migrated"):
            raise migrated(_SUPERGROUPS - abs(int(address)) if address.lstrip("-").isdecimal() else _SUPERGROUPS - 1)
        case Fault(name) if name in REFUSALS:
            raise _copy(REFUSALS[name])


def _copy(error: ApiError) -> ApiError:
    """Return a new exception: a raised exception keeps its traceback."""
    return ApiError(error.code, str(error))


def _check_rate(bot: Bot, calls_per_second: int) -> None:
    if not bot.rate_limit.accepts(calls_per_second, time.monotonic()):
        bot.state.count(CHANNEL, "refused")
        raise too_many_requests(1)


async def respond(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Respond with a failure that is not a refusal of the API."""
    error = ApiError(500, "Internal Server Error").body()
    return await respond_with(request, fault.name, web.json_response(error, status=500))
