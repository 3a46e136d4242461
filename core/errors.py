"""All errors of Ada, in one tree. Outcomes are return values; errors are faults. A `Refused` carries a stable `code`.

AdaError
├── Refused              the caller's mistake: nothing was written
│   ├── Invalid          the request makes no sense (400/422)
│   │   ├── InvalidForRecipient  for one recipient
│   │   └── InvalidMany          for several recipients
│   ├── NotFound         the object does not exist, or belongs to another tenant (404)
│   ├── Conflict         it is no longer possible, or another caller has done it (409)
│   ├── Forbidden        the key does not allow it (401/403)
│   └── TooMany          a limit is reached; possible again later (429)
│       └── QuotaExceeded the sender has used up its quota
├── AiError              models and speech, in providers.models.interface: not set up, refused, unavailable, invalid
├── MailError            e-mail, in couriers.email.mailer: refused, deferred, unavailable, unclear
├── SetupError           the operator's mistake: a setting or a server; names the command that corrects it
│   ├── LayoutUnknown    the data on the server has a layout that this version cannot work with
│   └── ShardsDiffer     the data on the server is spread over another number of shards
└── StoreError           Redis/Valkey
    ├── StoreUnavailable the server could not be reached in time; whether the call ran is *unknown*; repeat it
    ├── StoreRefuses     the server refuses writes at present: nothing was written; possible again later
    │   └── StoreFull    its memory is full; accepted work continues
    └── FunctionFault      a Lua function failed; the message names the file and the line
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the help of a command needs no library, and sentences need msgspec
    from core.sentence import Text


class AdaError(Exception):
    """Any error of Ada. `str()` is the message for people."""


class Refused(AdaError):
    """The caller's mistake. `code` is stable and upper case; `path` is the field ("recipients.0.id"), "" if none.
    `detail`: why, in English; `said`: the same as a sentence, if its author has made one; `scenarios.words.why_refused`
    has it in each language. `about`: whom or what is refused, such as an id; "" if the code says it. `retry_after`:
    when a repeat makes sense, counted from now; None if it never does.
    """

    retry_after: timedelta | None = None

    def __init__(self, code: str, detail: "Text", path: str = "", about: str = "") -> None:
        super().__init__(str(detail))
        self.code = code
        self.about = about
        self.said = detail
        self.detail = str(detail)
        self.path = path


class Invalid(Refused):
    """The request makes no sense."""


class InvalidForRecipient(Invalid):
    """It makes no sense for one recipient. `name`: of the recipient; `field`: of a personal text, "" if none is meant;
    `row`: of its table, 0 without one.
    """

    def __init__(self, code: str, detail: str, path: str, name: str, field: str = "", row: int = 0) -> None:
        super().__init__(code, detail, path, f"{name}, {{{{{field}}}}}" if field else name)
        self.name, self.field, self.row = name, field, row


MOST_SAID = 5
"""Faults of one request that its refusal says in words; the other ones stand in `errors`."""


class InvalidMany(Invalid):
    """The request makes no sense for several reasons or recipients. `errors`: the first ones; code and path
    are those of the first.
    """

    def __init__(self, detail: str, errors: Sequence[Invalid]) -> None:
        super().__init__(errors[0].code, detail, errors[0].path)
        self.errors = errors


class NotFound(Refused):
    """The object does not exist, or belongs to another tenant."""


class Conflict(Refused):
    """It is no longer possible, or another caller has done it, or it is possible `retry_after`."""

    def __init__(
        self, code: str, detail: "Text", path: str = "", about: str = "", *, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(code, detail, path, about)
        self.retry_after = retry_after or self.retry_after


class Forbidden(Refused):
    """The key does not allow it."""


class TooMany(Refused):
    """A limit is reached. `retry_after`: when it is possible again, counted from now."""

    def __init__(self, code: str, detail: "Text", retry_after: timedelta) -> None:
        super().__init__(code, detail)
        self.retry_after: timedelta = retry_after


class QuotaExceeded(TooMany):
    """The sender has used up its quota of `limit` deliveries per `period`."""

    def __init__(self, limit: int, period: timedelta, retry_after: timedelta) -> None:
        used = f"The quota of {limit} deliveries in {_in_words(period)} is used up"
        detail = f"{used}; the next one is possible in {_in_words(retry_after)}."
        super().__init__("QUOTA_EXCEEDED", detail, retry_after)
        self.limit = limit
        self.period = period


def _in_words(span: timedelta) -> str:
    """Return a duration, rounded up to seconds: `24 h`, `23 h 59 min 12 s`."""
    minutes, seconds = divmod(-(-span // timedelta(seconds=1)), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


class SetupError(AdaError):
    """The set-up is wrong. The message ends with the way to correct it."""


class LayoutUnknown(SetupError):
    """The data on the server has a layout that this version of Ada cannot work with. Nothing was written."""

    code = "LAYOUT_UNKNOWN"


class ShardsDiffer(SetupError):
    """The data on the server is spread over another number of shards than ADA_SHARDS says. Nothing was written."""

    code = "SHARDS_DIFFER"


class DataMoved(SetupError):
    """The data have moved to another server, or are being moved. Nothing was written."""

    code = "DATA_MOVED"


class StoreError(AdaError):
    """An error of Redis/Valkey."""


class StoreUnavailable(StoreError):
    """The server could not be reached in time. Whether the call ran is unknown; it is safe to repeat."""


class StoreRefuses(StoreError):
    """The server refuses writes at present, for example because its disk is full. Nothing was written. `code` is stable
    and upper case.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class StoreFull(StoreRefuses):
    """The server's memory is full. Functions that free memory still run."""

    def __init__(self) -> None:
        super().__init__("STORE_FULL", "The memory of Redis is full (maxmemory).")


class FunctionFault(StoreError):
    """A Lua function failed. The message names the file and the line."""


def malformed_cursor() -> Invalid:
    """Return the error for a cursor that Ada did not issue."""
    return Invalid("CURSOR_MALFORMED", "A cursor is taken from `next` of the page before.", "cursor")


def cursor_number(text: str) -> int:
    """Return the number that a cursor is, "" being 0. One of more than 18 digits is none: the server would refuse it.
    Raises Invalid CURSOR_MALFORMED.
    """
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise malformed_cursor()
    return int(text or 0)


def raise_first(faults: Iterable[Invalid]) -> None:
    """Refuse a value that has faults. Raises the first fault, if there is one."""
    for fault in faults:
        raise fault
