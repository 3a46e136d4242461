"""The table of a mail server's answers."""

import pytest

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown
from couriers.email.outcomes import HOUR, MINUTE, RECONNECT_AFTER, outcome_of, remedy
from providers.mail import MailDeferred, MailRefused, MailUnavailable, MailUnclear, Phase
from providers.mail.errors import answered, unanswered

BEFORE_DATA = [Phase.CONNECT, Phase.SIGN_IN, Phase.SENDER, Phase.RECIPIENT]


def outcome(phase: Phase, status: int, text: str = "no") -> Outcome:
    return outcome_of(answered(phase, status, text))


@pytest.mark.parametrize("phase", BEFORE_DATA)
def test_no_answer_before_data_is_an_outage(phase: Phase) -> None:
    error = unanswered(phase, 0, "Connection lost")
    assert isinstance(error, MailUnavailable)
    assert outcome_of(error) == Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, "Connection lost")


@pytest.mark.row("D-38")
@pytest.mark.parametrize("status", [0, -1, 100, 220, 251, 354, 600])
def test_only_an_answer_of_smtp_tells_what_became_of_the_message(status: int) -> None:
    error = answered(Phase.CONTENT, status, "what?")
    assert isinstance(error, MailUnclear)
    assert isinstance(outcome_of(error), Unknown)


@pytest.mark.parametrize("phase", Phase)
def test_421_ends_the_connection_and_the_message_was_not_sent(phase: Phase) -> None:
    expected = Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, "421 bye")
    assert outcome(phase, 421, "bye") == expected


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.CONNECT, Deferred(Reason.PROVIDER_DOWN, MINUTE, Scope.ACCOUNT, "450 no")),
        (Phase.SIGN_IN, Deferred(Reason.PROVIDER_DOWN, MINUTE, Scope.ACCOUNT, "450 no")),
        (Phase.SENDER, Deferred(Reason.THROTTLED, MINUTE, Scope.ACCOUNT, "450 no")),
        (Phase.RECIPIENT, Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, "450 no")),
        (Phase.CONTENT, Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, "450 no")),
    ],
)
def test_4xx_is_for_later(phase: Phase, expected: Outcome) -> None:
    assert outcome(phase, 450) == expected


@pytest.mark.parametrize(
    ("phase", "status", "text", "reason"),
    [
        (Phase.RECIPIENT, 550, "5.1.1 No such user", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 550, "No such user", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 551, "User not local", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 552, "5.2.2 Mailbox full", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 553, "Mailbox name not allowed", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 554, "5.7.1 Relay access denied", Reason.RECIPIENT_UNREACHABLE),
        (Phase.RECIPIENT, 0, "SMTPUTF8", Reason.RECIPIENT_UNREACHABLE),
        (Phase.CONTENT, 550, "5.1.1 No such user", Reason.RECIPIENT_UNREACHABLE),
        (Phase.CONTENT, 552, "5.2.2 Mailbox full", Reason.RECIPIENT_UNREACHABLE),
        (Phase.CONTENT, 554, "5.7.1 Spam", Reason.CONTENT_REFUSED),
        (Phase.CONTENT, 554, "Transaction failed", Reason.CONTENT_REFUSED),
        (Phase.CONTENT, 552, "5.3.4 Message too large", Reason.CONTENT_REFUSED),
        (Phase.SENDER, 552, "5.3.4 Message too large", Reason.CONTENT_REFUSED),
    ],
)
def test_5xx_for_a_message_is_final(phase: Phase, status: int, text: str, reason: Reason) -> None:
    found = outcome_of(MailRefused(phase, status, text))
    assert found == Rejected(reason, f"{status or ''} {text}".strip())


@pytest.mark.parametrize(
    ("phase", "status", "text", "setting"),
    [
        (Phase.CONNECT, 554, "5.7.1 Blocked", "ADA_SMTP_URL"),
        (Phase.CONNECT, 0, "STARTTLS extension not supported", "ADA_SMTP_URL"),
        (Phase.SIGN_IN, 535, "5.7.8 Bad credentials", "the password"),
        (Phase.SIGN_IN, 534, "5.7.9 App password needed", "the password"),
        (Phase.SENDER, 550, "5.7.1 Not your address", "from="),
        (Phase.SENDER, 530, "5.7.0 Authentication required", "from="),
        (Phase.RECIPIENT, 530, "5.7.0 Authentication required", "the password"),
    ],
)
def test_5xx_for_the_account_stops_the_courier(phase: Phase, status: int, text: str, setting: str) -> None:
    found = outcome_of(MailRefused(phase, status, text))
    assert isinstance(found, Halted)
    assert text in found.detail
    assert setting in found.detail


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(("status", "text"), [(550, "5.4.5 Daily limit exceeded"), (450, "4.7.28 Unusual rate")])
def test_a_limit_of_the_account_throttles_it(phase: Phase, status: int, text: str) -> None:
    assert outcome(phase, status, text) == Deferred(Reason.THROTTLED, HOUR, Scope.ACCOUNT, f"{status} {text}")


def test_the_remedy_names_the_setting() -> None:
    certificate = unanswered(Phase.CONNECT, 0, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    assert "set ADA_SMTP_CA" in remedy(certificate)
    assert "cannot be reached" in remedy(unanswered(Phase.CONNECT, 0, "refused"))
    assert "answers 450 busy" in remedy(MailDeferred(Phase.CONNECT, 450, "busy"))
