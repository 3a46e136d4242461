"""VK's answers, as VK's API sends them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from core.courier.interface import Deferred, Halted, Outcome, Rejected, Scope, Sent, Split, Unknown
from core.model.states import Reason
from couriers.vk import answers
from couriers.vk.calls import Call, Key

pytestmark = pytest.mark.row("D-21", "D-22")


def rejected(reason: Reason, code: int) -> Rejected:
    return Rejected(reason, f"VK error {code}")


def deferred(reason: Reason, wait: timedelta, scope: Scope, code: int) -> Deferred:
    return Deferred(reason, wait, scope, f"VK error {code}")


SECOND, TEN_MINUTES, QUARTER, HOUR = (timedelta(seconds=seconds) for seconds in (1, 600, 900, 3600))
UNREACHABLE, PRIVACY = Reason.RECIPIENT_UNREACHABLE, Reason.PRIVACY
FINAL = {
    **dict.fromkeys((7, 15, 901, 902), PRIVACY),
    **dict.fromkeys((18, 100, 113, 917, 936, 945, 983, 4711), UNREACHABLE),
    900: Reason.BLOCKED,
}
CONTENT = (911, 912, 913, 914)
WAITS = {
    6: deferred(Reason.THROTTLED, SECOND, Scope.ACCOUNT, 6),
    9: deferred(Reason.THROTTLED, TEN_MINUTES, Scope.CHAT, 9),
    29: deferred(Reason.THROTTLED, HOUR, Scope.METHOD, 29),
    **{code: deferred(Reason.ACCOUNT_STOPPED, QUARTER, Scope.ACCOUNT, code) for code in (14, 17, 3300)},
}


@pytest.mark.parametrize(("code", "outcome"), [(code, rejected(why, code)) for code, why in FINAL.items()])
def test_what_is_final_for_one_refuses_his_call_because_of_somebody_in_it(code: int, outcome: Rejected) -> None:
    assert answers.of_peer(code) == outcome
    assert answers.of_call(code, peers=1) == outcome
    assert answers.of_call(code, peers=2) == Split(outcome)


@pytest.mark.parametrize("code", CONTENT)
def test_a_refused_text_is_refused_for_all_of_its_call(code: int) -> None:
    assert answers.of_peer(code) == answers.of_call(code, 100) == rejected(Reason.CONTENT_REFUSED, code)


@pytest.mark.parametrize(("code", "outcome"), WAITS.items())
def test_a_wait_means_the_same_at_each_level(code: int, outcome: Deferred) -> None:
    assert answers.of_peer(code) == answers.of_call(code, 100) == outcome


def test_flood_control_of_a_whole_request_is_the_accounts() -> None:
    assert answers.of_request(9, 1) == deferred(Reason.THROTTLED, TEN_MINUTES, Scope.ACCOUNT, 9)
    assert answers.of_request(29, 9) == WAITS[29]


@pytest.mark.parametrize("code", [5, 27, 28])
def test_a_refused_token_halts(code: int) -> None:
    for outcome in (answers.of_peer(code), answers.of_call(code, 100), answers.of_request(code, 2500)):
        assert isinstance(outcome, Halted)


@pytest.mark.row("D-38")
@pytest.mark.parametrize("code", [1, 10, 950])
def test_what_may_have_been_done_is_unknown(code: int) -> None:
    unknown = Unknown(f"VK error {code}")
    assert answers.of_peer(code) == answers.of_call(code, 100) == answers.of_request(code, 2500) == unknown


@pytest.mark.parametrize("code", [12, 13, 36])
def test_too_much_is_halved_down_to_one(code: int) -> None:
    for level in (answers.of_call, answers.of_request):
        assert level(code, 2) == Split(rejected(Reason.CONTENT_REFUSED, code))
        assert level(code, 1) == Unknown(f"VK error {code}")


def test_a_request_refused_because_of_one_id_is_halved_and_an_unheard_of_error_is_not() -> None:
    assert answers.of_request(100, 2500) == Split(rejected(UNREACHABLE, 100))
    assert answers.of_request(100, 1) == rejected(UNREACHABLE, 100)
    unheard_of = answers.of_request(4711, 2500)
    assert unheard_of == Deferred(Reason.PROVIDER_DOWN, None, Scope.METHOD, "VK error 4711")


@pytest.mark.row("D-38")
def test_only_who_never_connected_has_surely_sent_nothing() -> None:
    safe = answers.failed(aiohttp.ConnectionTimeoutError())
    assert safe == Deferred(Reason.PROVIDER_DOWN, answers.OUTAGE, Scope.ACCOUNT, "ConnectionTimeoutError")
    for error in (TimeoutError(), aiohttp.ServerDisconnectedError(), aiohttp.ServerTimeoutError(), ValueError()):
        assert isinstance(answers.failed(error), Unknown)


# pairing the answer with the request

CALLS = [Call("a", 1, (1, 2)), Call("b", 2, (3,)), Call("c", 3, (4,))]
GOOD = {1: [{"peer_id": 1, "message_id": 11}, {"peer_id": 2, "message_id": 12}]}
B, C = [{"peer_id": 3, "message_id": 13}], [{"peer_id": 4, "message_id": 14}]
ERROR_7, ERROR_900 = ({"method": "messages.send", "error_code": code, "error_msg": ""} for code in (7, 900))
OTHER = {"method": "users.get", "error_code": 113, "error_msg": ""}
SENT = {1: Sent("11"), 2: Sent("12"), 3: Sent("13"), 4: Sent("14")}
LOST = Unknown("VK does not say which call failed")
NONSENSE = dict.fromkeys(SENT, Unknown("the answer does not fit the request"))

BODIES: list[tuple[str, Any, Mapping[int, Outcome]]] = [
    ("all sent", {"response": [GOOD[1], B, C]}, SENT),
    ("in another order", {"response": [GOOD[1][::-1], B, C]}, SENT),
    (
        "the n-th false is the n-th error",
        {"response": [GOOD[1], False, False], "execute_errors": [ERROR_900, ERROR_7]},
        SENT | {3: rejected(Reason.BLOCKED, 900), 4: rejected(PRIVACY, 7)},
    ),
    (
        "errors of other methods are passed over",
        {"response": [GOOD[1], False, C], "execute_errors": [OTHER, ERROR_900]},
        SENT | {3: rejected(Reason.BLOCKED, 900)},
    ),
    (
        "fewer errors than failures",
        {"response": [GOOD[1], False, False], "execute_errors": [ERROR_900]},
        SENT | {3: LOST, 4: LOST},
    ),
    ("more errors than failures", {"response": [GOOD[1], False, C], "execute_errors": [ERROR_7] * 2}, SENT | {3: LOST}),
    ("no errors", {"response": [False, B, C]}, SENT | {1: LOST, 2: LOST}),
    (
        "a call of several is halved",
        {"response": [False, B, C], "execute_errors": [ERROR_900]},
        SENT | dict.fromkeys((1, 2), Split(rejected(Reason.BLOCKED, 900))),
    ),
    (
        "a peer's own error",
        {"response": [[GOOD[1][0], {"peer_id": 2, "message_id": 0, "error": {"code": 902, "description": ""}}], B, C]},
        SENT | {2: rejected(PRIVACY, 902)},
    ),
    ("a peer left out", {"response": [GOOD[1][:1], B, C]}, SENT | {2: Unknown("VK says nothing about this peer")}),
    (
        "no list for a call",
        {"response": [5, B, C]},
        SENT | dict.fromkeys((1, 2), Unknown("VK says nothing about this peer")),
    ),
    ("too few answers", {"response": [GOOD[1], B]}, NONSENSE),
    ("no list", {"response": 1}, NONSENSE),
    ("nothing", {}, NONSENSE),
    ("null", None, NONSENSE),
    ("a whole error", {"error": {"error_code": 10, "error_msg": ""}}, dict.fromkeys(SENT, Unknown("VK error 10"))),
    ("an error without code", {"error": {}}, NONSENSE),
]


@pytest.mark.parametrize(("body", "outcomes"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES])
def test_each_message_gets_its_own_outcome(body: Any, outcomes: Mapping[int, Outcome]) -> None:
    keys = {peer: Key(call.text, call.random_id, peer) for call in CALLS for peer in call.peers}
    assert answers.read(body, CALLS) == {keys[peer]: outcome for peer, outcome in outcomes.items()}
