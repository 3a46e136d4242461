"""Outcomes of VK's answers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Split, Unknown
from couriers.vk import outcomes
from couriers.vk.calls import MessageKey, VkCall


def rejected(reason: Reason, code: int) -> Rejected:
    return Rejected(reason, f"VK error {code}")


def deferred(reason: Reason, wait: timedelta, scope: Scope, code: int) -> Deferred:
    return Deferred(reason, wait, scope, f"VK error {code}")


SECOND, EIGHT_MINUTES, QUARTER, HOUR = (timedelta(seconds=seconds) for seconds in (1, 480, 900, 3600))
UNREACHABLE, PRIVACY = Reason.RECIPIENT_UNREACHABLE, Reason.PRIVACY
FINAL = {
    **dict.fromkeys((7, 15, 901, 902), PRIVACY),
    **dict.fromkeys((18, 100, 113, 917, 936, 945, 983, 4711), UNREACHABLE),
    900: Reason.BLOCKED,
}
CONTENT = (911, 912, 913, 914)
THROTTLES = {
    6: deferred(Reason.THROTTLED, SECOND, Scope.ACCOUNT, 6),
    9: replace(deferred(Reason.THROTTLED, EIGHT_MINUTES, Scope.CHAT, 9), is_guess=True),
    29: deferred(Reason.THROTTLED, HOUR, Scope.METHOD, 29),
    **{code: deferred(Reason.ACCOUNT_STOPPED, QUARTER, Scope.ACCOUNT, code) for code in (14, 17, 3300)},
}


@pytest.mark.parametrize(("code", "outcome"), [(code, rejected(why, code)) for code, why in FINAL.items()])
def test_an_error_final_for_one_recipient_splits_a_call(code: int, outcome: Rejected) -> None:
    assert outcomes.peer_outcome(code) == outcome
    assert outcomes.call_outcome(code, peers=1) == outcome
    assert outcomes.call_outcome(code, peers=2) == Split(outcome)


@pytest.mark.parametrize("code", CONTENT)
def test_a_refused_text_is_rejected_for_all_peers_of_the_call(code: int) -> None:
    assert outcomes.peer_outcome(code) == outcomes.call_outcome(code, 100) == rejected(Reason.CONTENT_REFUSED, code)


@pytest.mark.parametrize(("code", "outcome"), THROTTLES.items())
def test_a_throttle_means_the_same_at_each_level(code: int, outcome: Deferred) -> None:
    assert outcomes.peer_outcome(code) == outcomes.call_outcome(code, 100) == outcome


def test_flood_control_of_a_whole_request_throttles_the_account() -> None:
    assert outcomes.request_outcome(9, 1) == deferred(Reason.THROTTLED, EIGHT_MINUTES, Scope.ACCOUNT, 9)
    assert outcomes.request_outcome(29, 9) == THROTTLES[29]


@pytest.mark.parametrize("code", [5, 27, 28])
def test_a_refused_token_halts(code: int) -> None:
    for outcome in (
        outcomes.peer_outcome(code),
        outcomes.call_outcome(code, 100),
        outcomes.request_outcome(code, 2500),
    ):
        assert isinstance(outcome, Halted)


@pytest.mark.parametrize("code", [1, 10, 950])
def test_an_ambiguous_error_is_unknown(code: int) -> None:
    unknown = Unknown(f"VK error {code}")
    assert (
        outcomes.peer_outcome(code)
        == outcomes.call_outcome(code, 100)
        == outcomes.request_outcome(code, 2500)
        == unknown
    )


@pytest.mark.parametrize("code", [12, 13, 36])
def test_a_request_that_is_too_large_is_split_down_to_one_message(code: int) -> None:
    for level in (outcomes.call_outcome, outcomes.request_outcome):
        assert level(code, 2) == Split(rejected(Reason.CONTENT_REFUSED, code))
        assert level(code, 1) == Unknown(f"VK error {code}")


def test_a_request_refused_because_of_one_id_is_split_and_an_unlisted_error_is_not() -> None:
    assert outcomes.request_outcome(100, 2500) == Split(rejected(UNREACHABLE, 100))
    assert outcomes.request_outcome(100, 1) == rejected(UNREACHABLE, 100)
    unlisted = outcomes.request_outcome(4711, 2500)
    assert unlisted == Deferred(Reason.PROVIDER_DOWN, None, Scope.METHOD, "VK error 4711")


def test_only_a_failed_connect_has_surely_sent_nothing() -> None:
    safe = outcomes.outcome_of_error(aiohttp.ConnectionTimeoutError())
    assert safe == Deferred(Reason.PROVIDER_DOWN, outcomes.RECONNECT_AFTER, Scope.ACCOUNT, "ConnectionTimeoutError")
    for error in (TimeoutError(), aiohttp.ServerDisconnectedError(), aiohttp.ServerTimeoutError(), ValueError()):
        assert isinstance(outcomes.outcome_of_error(error), Unknown)


# matching the answer to the request

CALLS = [VkCall("a", 1, (1, 2)), VkCall("b", 2, (3,)), VkCall("c", 3, (4,))]
GOOD = {1: [{"peer_id": 1, "message_id": 11}, {"peer_id": 2, "message_id": 12}]}
B, C = [{"peer_id": 3, "message_id": 13}], [{"peer_id": 4, "message_id": 14}]
ERROR_7, ERROR_900 = ({"method": "messages.send", "error_code": code, "error_msg": ""} for code in (7, 900))
OTHER = {"method": "users.get", "error_code": 113, "error_msg": ""}
SENT = {peer: Sent(str(number), number=number) for peer, number in ((1, 11), (2, 12), (3, 13), (4, 14))}
UNMATCHED = Unknown("VK does not say which call failed")
UNREADABLE = dict.fromkeys(SENT, Unknown("the answer does not fit the request"))

BODIES: list[tuple[str, Any, Mapping[int, Outcome]]] = [
    ("all sent", {"response": [GOOD[1], B, C]}, SENT),
    ("peers in another order", {"response": [GOOD[1][::-1], B, C]}, SENT),
    (
        "the n-th false belongs to the n-th error",
        {"response": [GOOD[1], False, False], "execute_errors": [ERROR_900, ERROR_7]},
        SENT | {3: rejected(Reason.BLOCKED, 900), 4: rejected(PRIVACY, 7)},
    ),
    (
        "errors of other methods are ignored",
        {"response": [GOOD[1], False, C], "execute_errors": [OTHER, ERROR_900]},
        SENT | {3: rejected(Reason.BLOCKED, 900)},
    ),
    (
        "fewer errors than failures",
        {"response": [GOOD[1], False, False], "execute_errors": [ERROR_900]},
        SENT | {3: UNMATCHED, 4: UNMATCHED},
    ),
    (
        "more errors than failures",
        {"response": [GOOD[1], False, C], "execute_errors": [ERROR_7] * 2},
        SENT | {3: UNMATCHED},
    ),
    ("no errors", {"response": [False, B, C]}, SENT | {1: UNMATCHED, 2: UNMATCHED}),
    (
        "a call with several peers is split",
        {"response": [False, B, C], "execute_errors": [ERROR_900]},
        SENT | dict.fromkeys((1, 2), Split(rejected(Reason.BLOCKED, 900))),
    ),
    (
        "a peer's own error",
        {"response": [[GOOD[1][0], {"peer_id": 2, "message_id": 0, "error": {"code": 902, "description": ""}}], B, C]},
        SENT | {2: rejected(PRIVACY, 902)},
    ),
    ("a peer is missing", {"response": [GOOD[1][:1], B, C]}, SENT | {2: Unknown("VK says nothing about this peer")}),
    (
        "no list for a call",
        {"response": [5, B, C]},
        SENT | dict.fromkeys((1, 2), Unknown("VK says nothing about this peer")),
    ),
    ("too few answers", {"response": [GOOD[1], B]}, UNREADABLE),
    ("no list", {"response": 1}, UNREADABLE),
    ("nothing", {}, UNREADABLE),
    ("null", None, UNREADABLE),
    ("an error without code", {"error": {}}, UNREADABLE),
]


@pytest.mark.parametrize(("body", "wanted"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES])
def test_each_message_gets_its_own_outcome(body: Any, wanted: Mapping[int, Outcome]) -> None:
    keys = {peer: MessageKey(call.text, call.random_id, peer) for call in CALLS for peer in call.peers}
    assert outcomes.outcomes_of(body, CALLS) == {keys[peer]: outcome for peer, outcome in wanted.items()}
