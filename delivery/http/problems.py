"""Refusals as RFC 9457 problem documents: every answer that is not 2xx or 3xx is one, with a stable `code`.

The table below is the vocabulary of this subsystem; codes of the house that are not in it get the status of their
class.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import hdrs, web

from core.errors import Conflict, Forbidden, Invalid, NotFound, Refused

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code says whatever the occurrence."""

    status: int
    title: str


CODES = {
    # the request as HTTP
    "ROUTE_NOT_FOUND": Meaning(404, "There is nothing at this address"),
    "METHOD_NOT_ALLOWED": Meaning(405, "This address does not have that method"),
    "EXPECTATION_FAILED": Meaning(417, "The expectation can not be met"),
    "BODY_TOO_LARGE": Meaning(413, "The body is too large"),
    "BODY_MALFORMED": Meaning(400, "The body could not be received"),
    "CONTENT_TYPE_UNSUPPORTED": Meaning(415, "The body's content type is not understood here"),
    "REQUEST_MALFORMED": Meaning(400, "The request is not valid HTTP"),
    "INTERNAL": Meaning(500, "A fault of ours"),
    "STORE_UNAVAILABLE": Meaning(503, "The store can not be reached"),
    "STORE_FULL": Meaning(503, "The store is full"),
    "SHUTTING_DOWN": Meaning(503, "This process is ending"),
    # who asks
    "KEY_MISSING": Meaning(401, "An API key is needed"),
    "KEY_UNKNOWN": Meaning(401, "The API key is not known"),
    "SCOPE_MISSING": Meaning(403, "The API key may not do this"),
    "RECEIPT_SECRET_WRONG": Meaning(403, "The token of this report is wrong"),
    "RATE_EXCEEDED": Meaning(429, "Too many requests"),
    # the body as JSON
    "JSON_MALFORMED": Meaning(400, "The body is not JSON"),
    "JSON_NOT_UTF8": Meaning(400, "The body is not UTF-8"),
    "JSON_BYTE_ORDER_MARK": Meaning(400, "JSON has no byte order mark"),
    "JSON_DUPLICATE_KEY": Meaning(400, "A name is there twice in one object"),
    "JSON_NOT_A_NUMBER": Meaning(400, "NaN and Infinity are not JSON"),
    "JSON_TOO_DEEP": Meaning(400, "The body is nested too deeply"),
    # the body and the query against their schema
    "UNKNOWN_FIELD": Meaning(400, "There is no such field"),
    "UNKNOWN_PARAMETER": Meaning(400, "There is no such parameter"),
    "PARAMETER_REPEATED": Meaning(400, "This parameter is given more than once"),
    "REQUIRED": Meaning(400, "A field is missing"),
    "WRONG_TYPE": Meaning(400, "A value is of the wrong type"),
    "WRONG_VALUE": Meaning(400, "A value is not one of those allowed"),
    "OUT_OF_RANGE": Meaning(400, "A number is out of range"),
    "TOO_SHORT": Meaning(400, "A value is too short"),
    "TOO_LONG": Meaning(400, "A value is too long"),
    "NUL_CHARACTER": Meaning(400, "A text has a NUL character"),
    "LONE_SURROGATE": Meaning(400, "A text has half of a surrogate pair"),
    "NOT_PRINTABLE": Meaning(400, "A name has characters that can not be shown"),
    # a delivery
    "TEXT_EMPTY": Meaning(400, "The text is empty"),
    "TEXT_TOO_LONG": Meaning(400, "The text is too long"),
    "NO_RECIPIENTS": Meaning(400, "There is no recipient"),
    "TOO_MANY_RECIPIENTS": Meaning(400, "There are too many recipients"),
    "RECIPIENT_WITHOUT_ID": Meaning(400, "A recipient has no id"),
    "RECIPIENT_AMBIGUOUS": Meaning(400, "A recipient is a person or a group, not both"),
    "GROUP_NOT_FOUND": Meaning(400, "There is no such group"),
    "SUPERGROUP_NOT_FOUND": Meaning(400, "There is no such supergroup"),
    "UNKNOWN_CHANNEL": Meaning(400, "There is no such channel"),
    "STRATEGY_NOT_AVAILABLE": Meaning(400, "This strategy is not available"),
    "WAIT_WITHOUT_FIRST": Meaning(400, "A wait belongs to the strategy first"),
    "TIME_MALFORMED": Meaning(400, "A time is not as in RFC 3339"),
    "TIME_WITHOUT_ZONE": Meaning(400, "A time has no zone"),
    "TIME_OUT_OF_RANGE": Meaning(400, "A time is too far away"),
    "EXPIRES_BEFORE_DUE": Meaning(400, "It would expire before it is due"),
    "CURSOR_MALFORMED": Meaning(400, "The cursor is not one of ours"),
    "LAST_EVENT_ID_MALFORMED": Meaning(400, "Last-Event-ID is not a number"),
    "REPORT_MALFORMED": Meaning(400, "The delivery report has no known status"),
    "ONE_FIELD_WANTED": Meaning(400, "Exactly one field is wanted"),
    # keys
    "HISTORY_KEY_MALFORMED": Meaning(400, "This is not a history key"),
    "HISTORY_KEY_OF_ANOTHER_SENDER": Meaning(400, "The history key was made for another sender"),
    "HISTORY_KEY_USED": Meaning(409, "The history key has its delivery already"),
    "HISTORY_KEY_FOREIGN": Meaning(403, "The history key belongs to somebody else"),
    "HISTORY_NOT_FOUND": Meaning(404, "There is no such delivery"),
    "TASK_NOT_FOUND": Meaning(404, "There is no such task"),
    "TASK_TAKEN": Meaning(409, "The task is under way"),
    "TASK_NOT_BURIED": Meaning(409, "The task is not buried"),
    "TASK_OVER": Meaning(409, "The task has ended"),
    "SELECTION_EMPTY": Meaning(400, "Nothing was chosen by which tasks can be found"),
    "TAG_MALFORMED": Meaning(400, "This can not be a tag"),
    "PRIORITY_OUT_OF_RANGE": Meaning(400, "There is no such priority"),
    "TUBE_MALFORMED": Meaning(400, "This can not be a tube"),
    "WEIGHT_OUT_OF_RANGE": Meaning(400, "There is no such weight"),
    "CLIENT_MALFORMED": Meaning(400, "This can not be a client's name"),
    "RECIPIENT_NOT_FOUND": Meaning(404, "There is no such recipient in this delivery"),
    "STATUS_NOT_RETRIABLE": Meaning(400, "What has this status can not be tried again"),
    "NOT_RELEASED": Meaning(409, "It has not been released yet"),
    "CANCELLED": Meaning(409, "It was cancelled"),
    "ALREADY_RELEASED": Meaning(409, "It is on its way already"),
    "ALREADY_FINISHED": Meaning(409, "It is finished already"),
    "IDEMPOTENCY_KEY_MALFORMED": Meaning(400, "The Idempotency-Key is not one"),
    "IDEMPOTENCY_KEY_REUSED": Meaning(422, "The Idempotency-Key came with another request before"),
    "IDEMPOTENCY_IN_PROGRESS": Meaning(409, "The first request with this Idempotency-Key is still under way"),
}

NOTHING_WRITTEN = "Nothing was written. What was accepted before is delivered all the same, and makes room."
UNCLEAR = "It may have been done. A repeat with the Idempotency-Key it had is safe; without one it is a new request."

_BY_CLASS: dict[type[Refused], Meaning] = {
    Invalid: Meaning(400, "What is asked makes no sense"),
    NotFound: Meaning(404, "It does not exist"),
    Conflict: Meaning(409, "It can not be done any more"),
    Forbidden: Meaning(403, "This may not be done with this key"),
}
_REFUSED = Meaning(400, "Refused")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with what was sent. `path`: "recipients.0.id"."""

    path: str
    code: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "code": self.code, "message": self.message}


class Faulty(Invalid):
    """What was sent has faults, all of them told. `code` is that of the first."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0]
        super().__init__(first.code, first.message, first.path)
        self.faults = faults


def fault(path: str, code: str, message: str) -> Faulty:
    """A refusal for one reason."""
    return Faulty([Fault(path, code, message)])


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal, ready to be told."""

    code: str
    status: int
    title: str
    detail: str
    faults: Sequence[Fault] = ()

    def as_json(self) -> dict[str, object]:
        whole = {"type": f"/docs#{self.code}", "title": self.title, "status": self.status, "detail": self.detail}
        told: dict[str, object] = {**whole, "code": self.code}
        if self.faults:
            told["errors"] = [fault.as_json() for fault in self.faults]
        return told

    @property
    def body(self) -> bytes:
        """The document. Whatever a caller sent and we quote, it is valid JSON in ASCII."""
        return json.dumps(self.as_json(), separators=(",", ":")).encode()

    def response(self, headers: Mapping[str, str] | None = None) -> web.Response:
        told = {hdrs.CONTENT_TYPE: CONTENT_TYPE, **(headers or {})}
        return web.Response(status=self.status, body=self.body, headers=told)


def problem(code: str, detail: str) -> Problem:
    """The problem of one of our own codes."""
    meaning = CODES[code]
    return Problem(code, meaning.status, meaning.title, detail)


def of_refusal(refused: Refused) -> Problem:
    """What the house refused, or the schema did."""
    meaning = CODES.get(refused.code) or _meaning_of(refused)
    return Problem(refused.code, meaning.status, meaning.title, refused.detail, _faults(refused))


def _meaning_of(refused: Refused) -> Meaning:
    fitting = (meaning for kind, meaning in _BY_CLASS.items() if isinstance(refused, kind))
    return next(fitting, _REFUSED)


def _faults(refused: Refused) -> Sequence[Fault]:
    if isinstance(refused, Faulty):
        return refused.faults
    return [Fault(refused.path, refused.code, refused.detail)] if refused.path else ()


_HTTP_CODES = {400: "REQUEST_MALFORMED", 404: "ROUTE_NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "BODY_TOO_LARGE"}


def of_http(status: int) -> Problem:
    """What the HTTP library refused."""
    phrase = HTTPStatus(status).phrase
    code = _HTTP_CODES.get(status, phrase.upper().replace(" ", "_").replace("-", "_"))
    meaning = CODES.get(code, Meaning(status, phrase))
    return Problem(code, status, meaning.title, f"{meaning.title}.")
