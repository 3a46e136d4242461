"""Kannel's answers to sendsms."""

import aiohttp
import pytest

from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Unknown
from couriers.sms import outcomes

DENIED = "Number(s) has/have been denied by white- and/or black-lists."
LINE_TOO_LONG = "Got more than 8190 bytes when reading: '/cgi-bin/sendsms?username=ada&password=hidden"

OUTCOMES: list[tuple[int, str, Outcome]] = [
    (202, "0: Accepted for delivery", Sent()),
    (202, "3: Queued for later delivery", Sent()),
    (202, "Sent. Message splits: 3", Sent()),
    (202, "<html>", Unknown("202")),
    (200, "0: Accepted for delivery", Unknown("200 0: Accepted for delivery")),
    (204, "", Unknown("204")),
    (503, "Temporal failure, try again later.", Deferred(
        Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, "503 Temporal failure, try again later.")),
    (503, "<html>", Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, "503")),
    (429, "", Deferred(Reason.THROTTLED, outcomes.MINUTE, Scope.ACCOUNT, "429")),
    (400, DENIED, Rejected(Reason.RECIPIENT_UNREACHABLE, "400 Number(s) has/have been denied")),
    (400, "Missing receiver number, rejected", Rejected(Reason.RECIPIENT_UNREACHABLE, "400 Missing receiver number")),
    (400, "Empty receiver number not allowed, rejected",
     Rejected(Reason.RECIPIENT_UNREACHABLE, "400 Empty receiver number")),
    (403, "Not routable. Do not try again.", Rejected(Reason.RECIPIENT_UNREACHABLE, "403 Not routable")),
    (400, "Charset or body misformed, rejected", Rejected(Reason.CONTENT_REFUSED, "400 Charset or body misformed")),
    (400, "Empty text not allowed, rejected.", Rejected(Reason.CONTENT_REFUSED, "400 Empty text not allowed")),
    (400, LINE_TOO_LONG, Rejected(Reason.RECIPIENT_UNREACHABLE, "400")),
    (403, "Forbidden", Deferred(Reason.ACCOUNT_STOPPED, None, Scope.RECIPIENT, "403")),
    (422, "", Rejected(Reason.RECIPIENT_UNREACHABLE, "422")),
    (413, "", Rejected(Reason.CONTENT_REFUSED, "413")),
    (414, "", Rejected(Reason.CONTENT_REFUSED, "414")),
    (408, "", Unknown("408")),
    (500, "Sending failed.", Unknown("500")),
    (502, "<html>", Unknown("502")),
    (504, "<html>", Unknown("504")),
]  # fmt: skip

HALTS = [
    (403, "Authorization failed for sendsms", "ADA_SMS_PASSWORD"),
    (400, "Sender missing and no global set, rejected", "ADA_SMS_FROM"),
    (400, "DLR-URL field misformed, rejected", "ADA_SMS_CALLBACK_URL"),
    (401, "", "ADA_SMS_URL"),
    (404, "Unknown request.", "ADA_SMS_URL"),
    (302, "", "ADA_SMS_URL"),
]


@pytest.mark.parametrize(("status", "body", "outcome"), OUTCOMES)
def test_each_answer_has_its_outcome(status: int, body: str, outcome: Outcome) -> None:
    assert outcomes.outcome_of(status, body) == outcome


@pytest.mark.parametrize(("status", "body", "advice"), HALTS)
def test_a_mistake_in_the_configuration_halts(status: int, body: str, advice: str) -> None:
    outcome = outcomes.outcome_of(status, body)
    assert isinstance(outcome, Halted)
    assert advice in outcome.detail


@pytest.mark.parametrize("status", [200, 202, 302, 400, 403, 404, 500, 503])
def test_an_answer_that_contains_the_password_is_not_quoted(status: int) -> None:
    assert "hidden" not in str(outcomes.outcome_of(status, LINE_TOO_LONG))


def test_only_a_failed_connect_has_surely_sent_nothing() -> None:
    safe = outcomes.outcome_of_error(aiohttp.ConnectionTimeoutError())
    assert safe == Deferred(Reason.PROVIDER_DOWN, outcomes.RECONNECT_AFTER, Scope.ACCOUNT, "ConnectionTimeoutError")
    for error in (TimeoutError(), aiohttp.ServerDisconnectedError(), aiohttp.ServerTimeoutError()):
        assert isinstance(outcomes.outcome_of_error(error), Unknown)
