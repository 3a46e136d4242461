"""Every answer of a mail server, with the outcome it means for the message. Pure.

| phase     | no answer        | 421              | 4xx                | 5xx                                          |
|-----------|------------------|------------------|--------------------|----------------------------------------------|
| connect   | deferred account | deferred account | deferred account   | halted: the server wants nothing from us     |
| sign in   | deferred account | deferred account | deferred account   | halted: the password                         |
| MAIL FROM | deferred account | deferred account | throttled account  | halted: the sender                           |
| RCPT TO   | deferred account | deferred account | deferred recipient | rejected: unreachable; 530 halted            |
| DATA      | **unknown**      | deferred account | deferred recipient | rejected: content; 5.1.x, 5.2.x: unreachable |

In any phase 5.4.5 and x.7.28 are a limit of the account (Gmail). A refusal of one recipient never stops the channel,
not even "relay denied": it can be meant for one domain only.
Sources: RFC 5321, 4.2 and 4.3.2 (answers per command); RFC 3463 (enhanced status); RFC 4954, 6 (AUTH).
"""

from datetime import timedelta

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown
from providers.mail import MailDeferred, MailError, MailRefused, MailUnclear, Phase

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

SIGN_IN_REQUIRED = 530
TOO_LARGE = 552  # also an answer to MAIL FROM
ACCOUNT_LIMITS = ("5.4.5", "4.7.28", "5.7.28")
MAILBOX = ("5.1.", "5.2.")

REMEDIES = {
    Phase.CONNECT: "check ADA_SMTP_URL",
    Phase.SIGN_IN: "check the user name and the password in ADA_SMTP_URL",
    Phase.SENDER: "check the sender: from= in ADA_SMTP_URL, or From: in the template",
}


def outcome_of(error: MailError) -> Outcome:
    """Return the outcome of a message that the server did not accept."""
    detail = f"{error.status or ''} {error.text}".strip()
    if error.enhanced_status in ACCOUNT_LIMITS:
        return Deferred(Reason.THROTTLED, HOUR, Scope.ACCOUNT, detail)
    match error:
        case MailUnclear():
            return Unknown(detail)
        case MailRefused():
            return _refused(error, detail)
        case MailDeferred():
            return _deferred(error.phase, detail)
        case _:
            return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, detail)


def _refused(error: MailRefused, detail: str) -> Outcome:
    is_account = error.phase in REMEDIES or error.status == SIGN_IN_REQUIRED
    if is_account and error.status != TOO_LARGE:
        return Halted(remedy(error))
    if error.phase is Phase.RECIPIENT or error.enhanced_status.startswith(MAILBOX):
        return Rejected(Reason.RECIPIENT_UNREACHABLE, detail)
    return Rejected(Reason.CONTENT_REFUSED, detail)


def _deferred(phase: Phase, detail: str) -> Outcome:
    match phase:
        case Phase.CONNECT | Phase.SIGN_IN:
            return Deferred(Reason.PROVIDER_DOWN, MINUTE, Scope.ACCOUNT, detail)
        case Phase.SENDER:
            return Deferred(Reason.THROTTLED, MINUTE, Scope.ACCOUNT, detail)
        case _:
            return Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, detail)


def remedy(error: MailError) -> str:
    """Return what the server answered and which setting to check, for the operator."""
    answer = f"{error.status or ''} {error.text}".strip()
    if "CERTIFICATE_VERIFY_FAILED" in error.text:
        return f"the mail server's certificate is not trusted: set ADA_SMTP_CA to the file of its authority ({answer})"
    if not error.status and not isinstance(error, MailRefused):
        return f"the mail server cannot be reached ({answer}): check ADA_SMTP_URL"
    return f"the mail server answers {answer}: {REMEDIES.get(error.phase, REMEDIES[Phase.SIGN_IN])}"
