"""Every answer of a push service, with the outcome it means for the message. Pure.

A push service recognises no repeat, so an answer that leaves open whether it has the message is `Unknown`. There are
many services, and people choose theirs: a wait concerns one browser, never the account.
Source: RFC 8030, sections 5 and 7; what Firebase, Mozilla, Apple and Microsoft say of theirs.
"""

from collections.abc import Mapping
from datetime import timedelta

import aiohttp

from couriers.sending import Deferred, Outcome, Reason, Rejected, Scope, Sent, TargetForbidden, Unknown

PAUSE = timedelta(minutes=1)
"""After 429 without Retry-After."""

REFUSED: Mapping[int, Reason] = {
    400: Reason.CONTENT_REFUSED,
    401: Reason.RECIPIENT_UNREACHABLE,
    403: Reason.RECIPIENT_UNREACHABLE,  # the browser has subscribed with another key
    405: Reason.RECIPIENT_UNREACHABLE,
    413: Reason.CONTENT_REFUSED,
}
GONE = frozenset({404, 410})
_THROTTLED = frozenset({406, 429})  # 406: Microsoft

NOT_PUBLIC = Rejected(Reason.RECIPIENT_UNREACHABLE, "the address of its push service is not public", is_gone=True)


def outcome_of(status: int, retry_after: int | None) -> Outcome:
    """Return the outcome of an answer. `retry_after`: seconds, None if the service names no wait."""
    wait = None if retry_after is None else timedelta(seconds=retry_after)
    if 200 <= status < 300:
        return Sent()
    if status in GONE:
        return Rejected(Reason.RECIPIENT_UNREACHABLE, f"{status}: the browser has unsubscribed", is_gone=True)
    if status in _THROTTLED:
        return Deferred(Reason.THROTTLED, wait or PAUSE, Scope.CHAT, str(status), is_guess=not wait)
    if status in REFUSED:
        return Rejected(REFUSED[status], str(status))
    if 300 <= status < 400:
        return Rejected(Reason.RECIPIENT_UNREACHABLE, f"{status}: redirects are not followed")
    if status == 503 and wait:  # it says that it accepts nothing now
        return Deferred(Reason.PROVIDER_DOWN, wait, Scope.CHAT, str(status))
    return Unknown(str(status))


def outcome_of_error(error: Exception) -> Outcome:
    """Return the outcome of a failed call. Only a connection that was never made has surely sent nothing. The attempt
    counts: a service that is nowhere is not looked for until the message expires.
    """
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, TargetForbidden):
        return NOT_PUBLIC
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, detail=type(error).__name__)
    return Unknown(type(error).__name__)
