"""Every answer of VK's `execute`, with the outcome it means for each message.

VK reports an error at one of three levels: for one peer (in its entry), for one call (`false` in its place and an
entry in execute_errors), or for the whole request. A code means the same at each level, with one exception: an error
that is final for one recipient refuses a whole call or request because of one member, so the batch is split.

14, 17 and 3300 (captcha, validation) need a person but do not halt the courier: VK withdraws a captcha by itself, and
after the operator has validated the account in a browser, nothing has to be restarted. The tasks are deferred as
`account_stopped`, and one attempt every 15 minutes checks. 5, 27 and 28 need another token and halt the courier.
Source: dev.vk.com/reference/errors, dev.vk.com/method/messages.send, dev.vk.com/method/execute.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp

from couriers.sending import (
    AnswerRow,
    Deferred,
    Halted,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    Split,
    Unknown,
    sentence,
)
from couriers.vk.calls import MessageKey, VkCall
from couriers.vk.client import AMBIGUOUS, TOKEN_REFUSED, NotJson

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts
METHOD = "messages.send"

FLOOD_CONTROL = 9
PARAMETER = 100
THROTTLES = {
    6: Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.ACCOUNT),
    FLOOD_CONTROL: Deferred(Reason.THROTTLED, timedelta(minutes=8), Scope.CHAT, is_guess=True),
    29: Deferred(Reason.THROTTLED, timedelta(hours=1), Scope.METHOD),
    14: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
    17: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
    3300: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
}
NO_ANSWER = Unknown("the answer does not fit the request")
TOO_LARGE = frozenset({12, 13, 36})  # the code did not compile, failed, or took too long
FINAL = {
    7: Reason.PRIVACY,
    15: Reason.PRIVACY,
    901: Reason.PRIVACY,
    902: Reason.PRIVACY,
    900: Reason.BLOCKED,
    18: Reason.RECIPIENT_UNREACHABLE,
    PARAMETER: Reason.RECIPIENT_UNREACHABLE,
    113: Reason.RECIPIENT_UNREACHABLE,
    917: Reason.RECIPIENT_UNREACHABLE,
    936: Reason.RECIPIENT_UNREACHABLE,
    945: Reason.RECIPIENT_UNREACHABLE,
    983: Reason.RECIPIENT_UNREACHABLE,
    911: Reason.CONTENT_REFUSED,
    912: Reason.CONTENT_REFUSED,
    913: Reason.CONTENT_REFUSED,
    914: Reason.CONTENT_REFUSED,
}


def _detail(code: int, words: str = "") -> str:
    return f"VK error {code}: {words}" if words else f"VK error {code}"


def peer_outcome(code: int, words: str = "") -> Outcome:
    """Return the outcome that an error in a peer's own entry means for its message. `words`: VK's own."""
    detail = _detail(code, words)
    if code in THROTTLES:
        return replace(THROTTLES[code], detail=detail)
    if code in TOKEN_REFUSED:
        return Halted(sentence("halt_token_ended", answer=detail))
    if code in AMBIGUOUS or code in TOO_LARGE:
        return Unknown(detail)
    return Rejected(FINAL.get(code, Reason.RECIPIENT_UNREACHABLE), detail)


def is_parameter_refused(outcome: Outcome) -> bool:
    """Return whether VK refused a parameter: the recipient, or a message that it names."""
    return isinstance(outcome, Rejected) and outcome.detail.partition(":")[0] == f"VK error {PARAMETER}"


def call_outcome(code: int, peers: int, words: str = "") -> Outcome:
    """Return the outcome that the error of a call with `peers` peers means for each of them. They share one text."""
    outcome = peer_outcome(code, words)
    if peers == 1:
        return outcome
    if code in TOO_LARGE:
        return Split(Rejected(Reason.CONTENT_REFUSED, _detail(code, words)))
    if isinstance(outcome, Rejected) and outcome.reason is not Reason.CONTENT_REFUSED:
        return Split(outcome)
    return outcome


def request_outcome(code: int, messages: int) -> Outcome:
    """Return the outcome that the error of the whole request means for each of its messages."""
    if code == FLOOD_CONTROL:
        return replace(THROTTLES[FLOOD_CONTROL], scope=Scope.ACCOUNT, detail=_detail(code), is_guess=False)
    if code in THROTTLES or code in TOKEN_REFUSED or code in AMBIGUOUS or code in TOO_LARGE or code in FINAL:
        return call_outcome(code, messages)
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.METHOD, _detail(code))


def outcome_of_error(error: Exception) -> Outcome:
    """Return the outcome of a failed connection. Only a connection that was never made has surely sent nothing."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, type(error).__name__)
    return Unknown(str(error) if isinstance(error, NotJson) else type(error).__name__)


def outcomes_of(body: Any, calls: Sequence[VkCall]) -> dict[MessageKey, Outcome]:
    """Return the outcome of each message of a request that was not refused as a whole.

    What the answer does not state clearly is `Unknown`; a repeat is safe, because it has the same random id.
    """
    keys = [key for call in calls for key in call.messages()]
    answers = body.get("response") if isinstance(body, dict) else None
    if not isinstance(answers, list) or len(answers) != len(calls):
        return dict.fromkeys(keys, NO_ANSWER)
    errors = _call_errors(body, answers)
    return {
        key: outcome
        for call, answer in zip(calls, answers, strict=True)
        for key, outcome in _call_outcomes(call, answer, errors)
    }


def _call_errors(body: dict[str, Any], answers: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the errors of the failed calls, in order.

    The n-th `false` belongs to the n-th entry of execute_errors. If their numbers differ, each is empty.
    """
    failures = sum(answer is False for answer in answers)
    errors = [error for error in body.get("execute_errors") or () if error.get("method") == METHOD]
    return iter(errors if len(errors) == failures else [{}] * failures)


def _call_outcomes(call: VkCall, answer: Any, errors: Iterator[dict[str, Any]]) -> Iterator[tuple[MessageKey, Outcome]]:
    if answer is False:
        error = next(errors)
        code, words, peers = error.get("error_code"), str(error.get("error_msg") or ""), len(call.peers)
        outcome = Unknown("VK does not say which call failed") if code is None else call_outcome(code, peers, words)
        return ((key, outcome) for key in call.messages())
    entries = {entry.get("peer_id"): entry for entry in answer} if isinstance(answer, list) else {}
    return ((key, _entry_outcome(entries.get(key.peer, {}))) for key in call.messages())


def _entry_outcome(entry: dict[str, Any]) -> Outcome:
    """Return the outcome of an entry. The reference is the number in the dialog, by which a message is edited; read
    marks have the id.
    """
    if entry.get("message_id"):
        return Sent(str(entry.get("conversation_message_id") or entry["message_id"]), number=entry["message_id"])
    error = entry.get("error") or {}
    code, words = error.get("code"), str(error.get("description") or "")
    return Unknown("VK says nothing about this peer") if code is None else peer_outcome(code, words)


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"VK": _rows()}


def _rows() -> Iterator[AnswerRow]:
    yield "connect", "refused, silence", outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "execute", "cut, silence, no JSON", outcome_of_error(aiohttp.ServerDisconnectedError())
    codes = sorted({*THROTTLES, *FINAL, *TOO_LARGE, *TOKEN_REFUSED, *AMBIGUOUS, 4711})
    for code in codes:
        answer = "any other error" if code == 4711 else f"error {code}"
        yield "execute, one entry", answer, peer_outcome(code)
        yield "execute, one call of several", answer, call_outcome(code, 2)
        yield "execute, as a whole", answer, request_outcome(code, 2)
