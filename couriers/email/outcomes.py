"""Every answer of a mail server, with the outcome it means for the message. Pure.

| phase     | no answer         | 421               | 4xx               | 5xx                                        |
|-----------|-------------------|-------------------|-------------------|--------------------------------------------|
| connect   | account waits     | account waits     | account waits     | halted: the server wants nothing from us   |
| sign in   | account waits     | account waits     | account waits     | halted: the password                       |
| MAIL FROM | account waits     | account waits     | account throttled | halted: the sender                         |
| RCPT TO   | recipient waits   | recipient waits   | recipient waits   | rejected: unreachable; 530 recipient waits |
| DATA      | **unknown**       | recipient waits   | recipient waits   | rejected: content; 5.1.x, 5.2.x unreachable|

Until RCPT TO the server knows nothing of the recipient, so the answer concerns the account. From then on it may concern
this one recipient, whatever it says, and never stops the channel (D-53): "relay denied" and "authentication required"
can be meant for one domain only.
5.4.5 and x.7.28 are a limit of the account (Gmail): before RCPT TO for certain, later if the next recipient gets it,
too (`couriers.email.outcomes`).
Sources: RFC 5321, 4.2 and 4.3.2 (answers per command); RFC 3463 (enhanced status); RFC 4954, 6 (AUTH).
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from couriers.email import MailDeferred, MailError, MailRefused, MailUnclear, Phase
from couriers.email.mailer import answered, unanswered
from couriers.sending import AnswerRow, Deferred, Halted, Outcome, Reason, Rejected, Scope, Sentence, Unknown, sentence

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

SIGN_IN_REQUIRED = 530
TOO_LARGE = 552  # also an answer to MAIL FROM
ACCOUNT_LIMITS = ("5.4.5", "4.7.28", "5.7.28")
MAILBOX = ("5.1.", "5.2.")

REMEDIES = {
    Phase.CONNECT: sentence("remedy_check", setting="ADA_SMTP_URL"),
    Phase.SIGN_IN: sentence("remedy_mail_sign_in"),
    Phase.SENDER: sentence("remedy_mail_sender"),
}


def outcome_of(error: MailError) -> Outcome:
    """Return the outcome of a message that the server did not accept."""
    detail = _detail(error)
    if is_limit(error) and not is_of_recipient(error):
        return over_limit(error)
    match error:
        case MailUnclear():
            return Unknown(detail)
        case MailRefused():
            return _refused(error, detail)
        case MailDeferred():
            return _deferred(error.phase, detail)
        case _ if is_of_recipient(error):
            return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, detail)
        case _:
            return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, detail)


def is_of_recipient(error: MailError) -> bool:
    """Return whether the server knew the recipient when it answered, so that others may get another answer."""
    return error.phase in (Phase.RECIPIENT, Phase.CONTENT)


def is_limit(error: MailError) -> bool:
    return error.enhanced_status in ACCOUNT_LIMITS


def over_limit(error: MailError) -> Outcome:
    """Return the outcome of a message after which the account must wait."""
    return Deferred(Reason.THROTTLED, HOUR, Scope.ACCOUNT, _detail(error))


def _detail(error: MailError) -> str:
    return f"{error.status or ''} {error.text}".strip()


def _refused(error: MailRefused, detail: str) -> Outcome:
    if error.phase in REMEDIES and error.status != TOO_LARGE:
        return Halted(remedy(error))
    if is_limit(error):
        return Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, detail)
    if error.status == SIGN_IN_REQUIRED:
        return Deferred(Reason.ACCOUNT_STOPPED, None, Scope.RECIPIENT, detail)
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


def remedy(error: MailError) -> Sentence:
    """Return what the server answered and which setting to check, for the operator."""
    answer = _detail(error)
    if "CERTIFICATE_VERIFY_FAILED" in error.text:
        return sentence("halt_certificate", answer=answer)
    if not error.status and not isinstance(error, MailRefused):
        return sentence("halt_mail_unreachable", answer=answer)
    return sentence("halt_mail", answer=answer, remedy=REMEDIES.get(error.phase, REMEDIES[Phase.SIGN_IN]))


class EmailLimits:
    """Decides whether a limit that the server names for one recipient concerns the account: it does if two recipients
    in a row got such an answer, and no mail was accepted between them. One recipient alone never stops the channel.
    """

    def __init__(self) -> None:
        self._named_for = ""

    def accepted(self) -> None:
        self._named_for = ""

    def refused(self, address: str, error: MailError) -> Outcome | None:
        """Return the outcome if the account must wait; None if the answer concerns this recipient, or is no limit."""
        if not is_limit(error) or not is_of_recipient(error):
            return None
        is_repeated = self._named_for not in ("", address)
        self._named_for = address
        return over_limit(error) if is_repeated else None


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"E-mail (SMTP)": _rows()}


def _rows() -> Iterator[AnswerRow]:
    steps = {
        Phase.CONNECT: "connect, greeting, EHLO, STARTTLS",
        Phase.SIGN_IN: "AUTH",
        Phase.SENDER: "MAIL",
        Phase.RECIPIENT: "RCPT; MAIL with SMTPUTF8, if refused",
        Phase.CONTENT: "DATA, after the dot",
    }
    for phase, step in steps.items():
        yield step, "cut", outcome_of(unanswered(phase, 0, ""))
        yield step, "silence", outcome_of(unanswered(phase, 0, "", is_silent=True))
        for status, text in (
            (421, ""),
            (450, ""),
            (450, "4.7.28"),
            (530, ""),
            (550, ""),
            (550, "5.1.1"),
            (550, "5.4.5"),
        ):
            yield step, f"{status} {text}".rstrip(), outcome_of(answered(phase, status, text))
