"""VK's answers to `execute`, each with what it means for the messages. The whole table is here.

An error comes at one of three levels: for one peer (in his entry), for one call (`false` in its place and an entry in
execute_errors), or for the whole request. The same code means the same at each, except that what is final for one
recipient refuses a call or a request because of somebody in it: then the halves are attempted on their own.

14, 17 and 3300 (captcha, validation) want a person, yet do not halt the courier: VK takes a captcha back by itself, and
an operator who has validated the account in his browser should not have to start anything. The tasks wait as
`account_stopped`, and one attempt in a quarter of an hour finds out. 5, 27 and 28 need another token: that is a halt.
Source: dev.vk.com/reference/errors, dev.vk.com/method/messages.send, dev.vk.com/method/execute.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Split, Unknown
from couriers.vk.calls import Call, Key

OUTAGE = timedelta(seconds=5)  # between two attempts to connect; named, so that a long outage uses up nobody's attempts
METHOD = "messages.send"

FLOODED = 9
WAITS = {
    6: Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.ACCOUNT),
    FLOODED: Deferred(Reason.THROTTLED, timedelta(minutes=10), Scope.CHAT),
    29: Deferred(Reason.THROTTLED, timedelta(hours=1), Scope.METHOD),
    14: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
    17: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
    3300: Deferred(Reason.ACCOUNT_STOPPED, timedelta(minutes=15), Scope.ACCOUNT),
}
STOPPED = frozenset({5, 27, 28})
AMBIGUOUS = frozenset({1, 10, 950})
TOO_MUCH = frozenset({12, 13, 36})  # the code did not compile, failed, or took too long
FINAL = {
    7: Reason.PRIVACY,
    15: Reason.PRIVACY,
    901: Reason.PRIVACY,
    902: Reason.PRIVACY,
    900: Reason.BLOCKED,
    18: Reason.RECIPIENT_UNREACHABLE,
    100: Reason.RECIPIENT_UNREACHABLE,
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


def of_peer(code: int) -> Outcome:
    """What an error in a peer's own entry means for his message."""
    detail = f"VK error {code}"
    if code in WAITS:
        return replace(WAITS[code], detail=detail)
    if code in STOPPED:
        return Halted(f"{detail}: the token is not accepted any more")
    if code in AMBIGUOUS or code in TOO_MUCH:
        return Unknown(detail)
    return Rejected(FINAL.get(code, Reason.RECIPIENT_UNREACHABLE), detail)


def of_call(code: int, peers: int) -> Outcome:
    """What the error of a call with so many peers means for each of them. The text is the same for all of them."""
    outcome = of_peer(code)
    if peers == 1:
        return outcome
    if code in TOO_MUCH:
        return Split(Rejected(Reason.CONTENT_REFUSED, f"VK error {code}"))
    if isinstance(outcome, Rejected) and outcome.reason is not Reason.CONTENT_REFUSED:
        return Split(outcome)
    return outcome


def of_request(code: int, messages: int) -> Outcome:
    """What the error of the whole request means for each of its messages."""
    if code == FLOODED:
        return replace(WAITS[FLOODED], scope=Scope.ACCOUNT, detail=f"VK error {code}")
    if code in WAITS or code in STOPPED or code in AMBIGUOUS or code in TOO_MUCH or code in FINAL:
        return of_call(code, messages)
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.METHOD, f"VK error {code}")


def failed(error: Exception) -> Outcome:
    """What a failure of the connection means. Only who never connected has surely sent nothing."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, OUTAGE, Scope.ACCOUNT, type(error).__name__)
    return Unknown(type(error).__name__)


def read(body: Any, calls: Sequence[Call]) -> dict[Key, Outcome]:
    """What became of each message. Whatever the answer does not clearly say is `Unknown`: a repeat has the same id."""
    keys = [key for call in calls for key in call.messages()]
    if isinstance(code := _code(body), int):
        return dict.fromkeys(keys, of_request(code, len(keys)))
    answers = body.get("response") if isinstance(body, dict) else None
    if not isinstance(answers, list) or len(answers) != len(calls):
        return dict.fromkeys(keys, Unknown("the answer does not fit the request"))
    codes = _codes(body, answers)
    return {
        key: outcome
        for call, answer in zip(calls, answers, strict=True)
        for key, outcome in _of_call(call, answer, codes)
    }


def _code(body: Any) -> int | None:
    error = body.get("error") if isinstance(body, dict) else None
    return error.get("error_code") if isinstance(error, dict) else None


def _codes(body: dict[str, Any], answers: list[Any]) -> Iterator[int | None]:
    """The codes of the failed calls, in order: the n-th `false` belongs to the n-th entry, if both are as many."""
    failures = sum(answer is False for answer in answers)
    errors = [error for error in body.get("execute_errors") or () if error.get("method") == METHOD]
    return iter([error.get("error_code") for error in errors] if len(errors) == failures else [None] * failures)


def _of_call(call: Call, answer: Any, codes: Iterator[int | None]) -> Iterator[tuple[Key, Outcome]]:
    if answer is False:
        code = next(codes)
        outcome = Unknown("VK does not say which call failed") if code is None else of_call(code, len(call.peers))
        return ((key, outcome) for key in call.messages())
    entries = {entry.get("peer_id"): entry for entry in answer} if isinstance(answer, list) else {}
    return ((key, _of_entry(entries.get(key.peer, {}))) for key in call.messages())


def _of_entry(entry: dict[str, Any]) -> Outcome:
    if entry.get("message_id"):
        return Sent(str(entry["message_id"]))
    code = (entry.get("error") or {}).get("code")
    return Unknown("VK says nothing about this peer") if code is None else of_peer(code)
