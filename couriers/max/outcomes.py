"""Every answer of MAX to a call that sends, edits or removes, with the outcome it means for the message.

MAX does not recognise repeats. So an answer that leaves open whether the message was accepted is `Unknown`; a message
is known not to be sent only if MAX refused it or the connection was never made. The code of an error decides, then the
status: errors come with status 200, too. A 429 is taken as not stored (not documented).
Source: dev.max.ru/docs-api, the schema max-messenger/api-schema 0.0.33, logs of others' bots.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import aiohttp

from couriers.max.client import TOKEN_REFUSED, Answer, error_of
from couriers.sending import AnswerRow, Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Unknown, sentence

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts

NOT_STARTED = "dialog.not.found"
NOT_READY = "attachment.not.ready"
GONE = "message.not.found"
SUSPENDED = "error.dialog.suspended"

FINAL: Mapping[str, Reason] = {
    "chat.denied": Reason.RECIPIENT_UNREACHABLE,  # with SUSPENDED: blocked
    NOT_STARTED: Reason.PRIVACY,
    "error.dialog.notfound": Reason.PRIVACY,
    "chat.not.found": Reason.RECIPIENT_UNREACHABLE,
    "proto.payload": Reason.CONTENT_REFUSED,
    "method.not.allowed": Reason.CONTENT_REFUSED,
    GONE: Reason.CONTENT_REFUSED,
}
FINAL_STATUS: Mapping[int, Reason] = {
    400: Reason.CONTENT_REFUSED,
    403: Reason.RECIPIENT_UNREACHABLE,
    404: Reason.RECIPIENT_UNREACHABLE,
    405: Reason.CONTENT_REFUSED,
    413: Reason.CONTENT_REFUSED,
}


def outcome_of(answer: Answer) -> Outcome:
    """Return the outcome of an answer. A refusal for now is a `Deferred`, of whose wait only MAX's own is known."""
    code, message = error_of(answer.body)
    if not code and answer.status == 200:
        mid = mid_of(answer.body)
        return Sent(mid) if mid else Unknown("the answer has no message")
    detail = code or str(answer.status)
    if answer.status == 401 or code == "verify.token":
        return Halted(TOKEN_REFUSED)
    if answer.status == 429 or code == "too.many.requests":
        after = None if answer.retry_after is None else timedelta(seconds=answer.retry_after)
        return Deferred(Reason.THROTTLED, after, Scope.ACCOUNT, "429")
    if code == NOT_READY:
        return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, NOT_READY)
    if SUSPENDED in message:
        return Rejected(Reason.BLOCKED, SUSPENDED)
    if (reason := FINAL.get(code) or FINAL_STATUS.get(answer.status)) is not None:
        return Rejected(reason, detail)
    return _unclear(answer.status, detail)


def _unclear(status: int, detail: str) -> Outcome:
    if 300 <= status < 400:
        return Halted(sentence("halt_redirect", provider="MAX", answer=status, setting="ADA_MAX_API_URL"))
    return Unknown(detail)


def outcome_of_error(error: Exception) -> Outcome:
    """Return the outcome of a failed connection. Only a connection that was never made has surely sent nothing."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, type(error).__name__)
    return Unknown(type(error).__name__)


def mid_of(body: Any) -> str:
    """Return the id of the message in an answer, "" if there is none."""
    message = body.get("message") if isinstance(body, dict) else None
    inner = message.get("body") if isinstance(message, dict) else None
    mid = inner.get("mid") if isinstance(inner, dict) else None
    return mid if isinstance(mid, str) else ""


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"MAX": _rows()}


def _rows() -> Iterator[AnswerRow]:
    yield "connect", "refused, silence", outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "send", "cut, silence", outcome_of_error(aiohttp.ServerDisconnectedError())
    for status in (302, 400, 401, 403, 404, 405, 413, 500, 503):
        yield "send", str(status), outcome_of(Answer(status, {}))
    yield "send", "429, Retry-After 1", outcome_of(Answer(429, {}, 1))
    for code in (*FINAL, NOT_READY, "verify.token", "any other code"):
        yield "send", code, outcome_of(Answer(200, {"code": code, "message": ""}))
