"""The table of a mail server's answers."""

import pytest

from couriers.email import MailDeferred, MailRefused, MailUnavailable, MailUnclear, Phase
from couriers.email.mailer import answered, unanswered
from couriers.email.outcomes import HOUR, MINUTE, RECONNECT_AFTER, EmailLimits, outcome_of, remedy
from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown

OF_ACCOUNT = [Phase.CONNECT, Phase.SIGN_IN, Phase.SENDER]
"""Until then the server knows nothing of the recipient."""


def outcome(phase: Phase, status: int, text: str = "no") -> Outcome:
    return outcome_of(answered(phase, status, text))


def down(phase: Phase, detail: str) -> Outcome:
    if phase in OF_ACCOUNT:
        return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, detail)
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, detail)


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("phase", [*OF_ACCOUNT, Phase.RECIPIENT])
def test_no_answer_before_data_is_an_outage_of_the_account_only_if_no_recipient_is_known(
    phase: Phase, is_silent: bool
) -> None:
    error = unanswered(phase, 0, "Connection lost", is_silent=is_silent)
    assert isinstance(error, MailUnavailable)
    assert outcome_of(error) == down(phase, "Connection lost")


@pytest.mark.parametrize("status", [0, -1, 100, 220, 251, 354, 600])
def test_only_an_answer_of_smtp_settles_the_outcome_of_a_message(status: int) -> None:
    error = answered(Phase.CONTENT, status, "what?")
    assert isinstance(error, MailUnclear)
    assert isinstance(outcome_of(error), Unknown)


@pytest.mark.parametrize("phase", Phase)
def test_421_ends_the_connection_and_the_message_was_not_sent(phase: Phase) -> None:
    assert outcome(phase, 421, "bye") == down(phase, "421 bye")


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
    ],
)
def test_5xx_for_the_account_stops_the_courier(phase: Phase, status: int, text: str, setting: str) -> None:
    found = outcome_of(MailRefused(phase, status, text))
    assert isinstance(found, Halted)
    assert text in found.detail
    assert setting in found.detail


def test_authentication_required_for_one_recipient_may_be_meant_for_its_domain_only() -> None:
    found = outcome(Phase.RECIPIENT, 530, "5.7.0 Authentication required")
    assert found == Deferred(Reason.ACCOUNT_STOPPED, None, Scope.RECIPIENT, "530 5.7.0 Authentication required")


LIMITS = pytest.mark.parametrize(
    ("status", "text"), [(550, "5.4.5 Daily limit exceeded"), (450, "4.7.28 Unusual rate")]
)


@LIMITS
@pytest.mark.parametrize("phase", OF_ACCOUNT)
def test_a_limit_of_the_account_throttles_it(phase: Phase, status: int, text: str) -> None:
    assert outcome(phase, status, text) == Deferred(Reason.THROTTLED, HOUR, Scope.ACCOUNT, f"{status} {text}")


@LIMITS
@pytest.mark.parametrize("phase", [Phase.RECIPIENT, Phase.CONTENT])
def test_a_limit_named_for_a_recipient_is_the_accounts_if_the_next_recipient_gets_it_too(
    phase: Phase, status: int, text: str
) -> None:
    error, limits = answered(phase, status, text), EmailLimits()
    assert outcome_of(error) == Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, f"{status} {text}")
    assert [limits.refused(address, error) for address in ("a", "a")] == [None, None]
    limits.accepted()
    assert limits.refused("b", error) is None
    assert limits.refused("a", error) == Deferred(Reason.THROTTLED, HOUR, Scope.ACCOUNT, f"{status} {text}")


def test_the_remedy_names_the_setting() -> None:
    certificate = unanswered(Phase.CONNECT, 0, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    assert "set ADA_SMTP_CA" in str(remedy(certificate))
    assert "cannot be reached" in str(remedy(unanswered(Phase.CONNECT, 0, "refused")))
    assert "answers 450 busy" in str(remedy(MailDeferred(Phase.CONNECT, 450, "busy")))
