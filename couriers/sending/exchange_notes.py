"""The provider's answers to each message of an attempt: in short for its outcome, in full for seven days (D-48).

A failure is noted with all calls of its attempt, a success only behind a failure. Everything passes the filter of
`couriers.provider_calls` first. `lua/delivery/modules/exchanges.lua` keeps the notes, in the same step as the outcomes.

Called by `couriers.sending.parcel_executor`.
"""

import logging
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core.deliveries.delivery_reports import ProviderCall
from core.model.json_form import compact_json
from core.model.states import Reason
from core.queue.checks import error_text
from couriers.provider_calls import NotedCall, WordFilter
from couriers.sending.interface import Deferred, Halted, Message, Outcome, Partly, Rejected, Sent, Split, Unknown

log = logging.getLogger(__name__)

LONGEST_DETAIL = 200
_REFUSED = 300  # an SMTP or HTTP status from here on is no success
_LOG_PAUSE = 60.0
_MOST_LOGGED = 200


class ExchangeNote(NamedTuple):
    """`detail`: in one line, "" if there is nothing to say. `line`: as it is kept, "" if it is not."""

    detail: str = ""
    line: str = ""


class ExchangeNotes:
    """One per account. `secrets`: those of its settings."""

    def __init__(self, channel: str, secrets: Sequence[str]) -> None:
        self._channel = channel
        self._filter = WordFilter(secrets)
        self._logged: dict[str, tuple[float, int]] = {}

    def cleaned(self, outcome: Outcome, message: Message) -> Outcome:
        """Return an outcome without secrets, and without the address and text of the message."""
        match outcome:
            case Sent():
                return outcome
            case Halted():
                clean = self._filter.clean(outcome.detail, _private(message))
                return outcome if clean == outcome.detail else Halted(clean)
            case Deferred() | Rejected() | Unknown():
                return replace(outcome, detail=self._filter.clean(outcome.detail, _private(message)))
            case Partly():
                return replace(outcome, rest=self.cleaned(outcome.rest, message))
            case Split(rejected, detail):
                rejected = replace(rejected, detail=self._filter.clean(rejected.detail, _private(message)))
                return Split(rejected, self._filter.clean(detail, _private(message)))

    def of(
        self, outcome: Outcome, message: Message, calls: Sequence[NotedCall], at: int, *, shared: bool, is_repeat: bool
    ) -> ExchangeNote:
        """Return the note of one message. `at`: when the attempt began, server ms. `shared`: the calls carried other
        messages, too, so their words may be about those. `is_repeat`: an attempt has failed before.
        """
        if isinstance(outcome, Sent) and not is_repeat:
            return ExchangeNote()
        private = _private(message)
        words = ["" if shared else self._filter.clean(one.words, private) for one in calls]
        methods = [self._filter.clean(one.method) for one in calls]
        rest = outcome.rest if isinstance(outcome, Partly) else outcome
        rest = rest.rejected if isinstance(rest, Split) else rest
        detail = "" if isinstance(rest, Sent) else _detail(rest, calls, words)
        begin = calls[0].started if calls else 0.0
        exchanged = [_call(*one, begin) for one in zip(calls, methods, words, strict=True)]
        kind, reason = type(rest).__name__.lower(), str(getattr(rest, "reason", ""))
        return ExchangeNote(detail, f"{at}\t{kind}|{reason}|{detail}\t{compact_json(exchanged)}")

    def log(self, ending: str, reason: str, detail: str) -> None:
        """Log how an attempt ended and what the provider said: at once, then at most once a minute with a count."""
        if not detail:
            return
        said = f"{self._channel}: {ending}{f', {reason}' if reason else ''}: {detail}"
        since, count = self._logged.get(said, (float("-inf"), 0))
        if time.monotonic() - since < _LOG_PAUSE:
            self._logged[said] = (since, count + 1)
            return
        if len(self._logged) >= _MOST_LOGGED:
            self._logged.clear()
        self._logged[said] = (time.monotonic(), 0)
        log.warning("%s%s", said, f" ({count + 1} times since the last line)" if count else "")

    def log_fault(self, fault: BaseException) -> None:
        """Log a fault of the courier with its place, and its text without secrets."""
        place, text = "".join(traceback.format_tb(fault.__traceback__)), self._filter.clean(error_text(fault))
        log.error("%s: an attempt failed: %s\n%s", self._channel, text, place)


def _detail(outcome: Any, calls: Sequence[NotedCall], words: Sequence[str]) -> str:
    """Return the detail of an outcome with the provider's words and number, if it does not have them."""
    detail, said, last = outcome.detail, words[-1] if words else "", calls[-1] if calls else None
    is_unanswered = isinstance(outcome, Unknown) or getattr(outcome, "reason", "") == Reason.PROVIDER_DOWN
    if said and last and not last.status and is_unanswered:
        detail = f"no answer to {last.method} ({said})"
    elif said and said not in detail:
        detail = said if not detail or detail in said else f"{detail}: {said}"
    if last and last.status >= _REFUSED and str(last.status) not in detail:
        detail = f"{last.status} {detail}"
    return detail if len(detail) <= LONGEST_DETAIL else f"{detail[: LONGEST_DETAIL - 1]}…"


def _private(message: Message) -> tuple[str, ...]:
    return message.address, message.text, message.report_url


def _call(call: NotedCall, method: str, words: str, begin: float) -> ProviderCall:
    after, took = call.started - begin, call.ended - call.started
    return ProviderCall(method, call.status, words, round(after * 1000), round(took * 1000))
