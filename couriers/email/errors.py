"""Errors of a message at a mail server. The phase names the step of SMTP that failed.

MailError
├── MailRefused      refused for good (5xx), or the server lacks what we need: not sent
├── MailDeferred     refused for now (4xx): not sent, a later attempt may succeed
├── MailUnavailable  no connection, or it ended before the message was transferred: not sent
│   └── MailSilent   no answer within the time limit, before the message was transferred
└── MailUnclear      the message was transferred and the answer is missing: it may have been sent
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from aiosmtplib import SMTPException, SMTPResponseException

from core.errors import AdaError
from couriers.exchanges import NotedCall, noted_call

SHUTTING_DOWN = 421
_ENHANCED_STATUS = re.compile(r"\s*([245]\.\d{1,3}\.\d{1,3})\b")


class Phase(StrEnum):
    """A step of SMTP."""

    CONNECT = "connect"  # the connection, the greeting, EHLO, STARTTLS
    SIGN_IN = "sign_in"  # AUTH
    SENDER = "sender"  # MAIL FROM
    RECIPIENT = "recipient"  # RCPT TO
    CONTENT = "content"  # DATA and the message


STEPS = {
    Phase.CONNECT: "connect",
    Phase.SIGN_IN: "AUTH",
    Phase.SENDER: "MAIL FROM",
    Phase.RECIPIENT: "RCPT TO",
    Phase.CONTENT: "DATA",
}


class MailError(AdaError):
    """A message was not sent, or may not have been. `code` is stable; `status` is the server's answer, 0 if none."""

    code = "MAIL_FAILED"

    def __init__(self, phase: Phase, status: int, text: str) -> None:
        super().__init__(f"{phase}: {status or ''} {text}".replace("  ", " "))
        self.phase = phase
        self.status = status
        self.text = text

    @property
    def enhanced_status(self) -> str:
        """The status of RFC 3463 at the beginning of the answer, for example "5.1.1"; "" if there is none."""
        found = _ENHANCED_STATUS.match(self.text)
        return found[1] if found else ""


class MailRefused(MailError):
    """The server refused for good, or lacks what we need. Nothing was sent."""

    code = "MAIL_REFUSED"


class MailDeferred(MailError):
    """The server refused for now. Nothing was sent."""

    code = "MAIL_DEFERRED"


class MailUnavailable(MailError):
    """There was no connection, or it ended before the message was transferred. Nothing was sent."""

    code = "MAIL_UNAVAILABLE"


class MailSilent(MailUnavailable):
    """The server did not answer within the time limit, before the message was transferred. Nothing was sent."""


class MailUnclear(MailError):
    """The message was transferred and the answer is missing. It may have been sent."""

    code = "MAIL_UNCLEAR"


@contextmanager
def mail_errors(phase: Phase, step: str = "") -> Iterator[NotedCall]:
    """Raise the errors of aiosmtplib as a MailError. `step`: as the exchange names it, in place of the phase."""
    with noted_call(step or STEPS[phase]) as call:
        try:
            yield call
        except SMTPResponseException as error:
            call.answered(error.code, error.message)
            raise answered(phase, error.code, error.message) from None
        except OSError as error:  # disconnections, time limits and failed TLS handshakes are OSErrors too
            text = str(error) or type(error).__name__
            call.answered(0, text)
            raise unanswered(phase, 0, text, is_silent=isinstance(error, TimeoutError)) from None
        except SMTPException as error:  # the server does not offer STARTTLS, AUTH or SMTPUTF8
            call.answered(0, error.message)
            raise MailRefused(phase, 0, error.message) from None


def answered(phase: Phase, status: int, text: str) -> MailError:
    """Return the error that an answer of the server means."""
    if status == SHUTTING_DOWN:
        return MailUnavailable(phase, status, text)
    if 400 <= status < 600:
        return (MailDeferred if status < 500 else MailRefused)(phase, status, text)
    return unanswered(phase, status, text)


def unanswered(phase: Phase, status: int, text: str, *, is_silent: bool = False) -> MailError:
    """Return the error for an answer that is missing or is not of SMTP."""
    if phase is Phase.CONTENT:
        return MailUnclear(phase, status, text)
    return (MailSilent if is_silent else MailUnavailable)(phase, status, text)
