"""Sends messages to one mail server, over connections that are kept for the next message.

A kept connection may have died meanwhile: a server closes idle ones, and limits the messages of one connection (421).
If it ends before the message was transferred, the message is sent on a new connection, once.

MailError
├── MailRefused      refused for good (5xx), or the server lacks what we need: not sent
├── MailDeferred     refused for now (4xx): not sent, a later attempt may succeed
├── MailUnavailable  no connection, or it ended before the message was transferred: not sent
│   └── MailSilent   no answer within the time limit, before the message was transferred
└── MailUnclear      the message was transferred and the answer is missing: it may have been sent

The phase of an error names the step of SMTP that failed.

Invariant: a message is never sent again after DATA. Test: tests/couriers/email/test_mailer.py.

`LinkCodeMailer` mails the codes that link a contact to a person (`core.directory.linking`) or sign it in
(`core.sessions`).
"""

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from aiosmtplib import SMTP, SMTPException, SMTPResponseException

from core.directory.linking import NotMailed
from core.errors import AdaError
from core.model.contacts.addresses import channel_title
from core.model.people import User
from core.sentence import language_of
from couriers.email.message import EncodedMail, MailMessage, encode
from couriers.email.server import Encryption, MailServer
from couriers.email.template import EmailTemplates
from couriers.provider_calls import NotedCall, noted_call

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


_FAREWELL = 1.0
"""Seconds that a server has to answer QUIT."""

Announce = Callable[[], Awaitable[None]]

LONGEST_IDLE = 60.0
"""Seconds after which a kept connection is not used again: a firewall may have forgotten it without a word."""


async def unannounced() -> None:
    """Announce nothing."""


class Session:
    """One connection to a mail server, signed in. Transfers one message at a time."""

    def __init__(self, smtp: SMTP) -> None:
        self._smtp = smtp

    @classmethod
    async def open(cls, server: MailServer, timeout: timedelta, tls: ssl.SSLContext | None) -> "Session":
        """Connect, encrypt as the server's settings say, and sign in. Raises MailError."""
        smtp = SMTP(
            hostname=server.host,
            port=server.port,
            timeout=timeout.total_seconds(),
            use_tls=server.encryption is Encryption.TLS,
            start_tls=False if server.encryption is Encryption.TLS else server.encryption.value,
            tls_context=tls,
        )
        try:
            with mail_errors(Phase.CONNECT) as call:
                await smtp.connect()
                call.answered((await smtp.ehlo()).code)  # again after STARTTLS (RFC 3207, 4.2)
            if server.username:
                with mail_errors(Phase.SIGN_IN) as call:
                    call.answered((await smtp.login(server.username, server.password)).code)
        except BaseException:  # also a cancellation: the socket is closed
            smtp.close()
            raise
        return cls(smtp)

    @property
    def is_open(self) -> bool:
        return self._smtp.is_connected

    async def transfer(self, mail: EncodedMail, announce: Announce = unannounced) -> None:
        """Transfer a message; `announce` is awaited before DATA. Raises MailError, and what `announce` raises."""
        await self._name_sender(mail)
        with mail_errors(Phase.RECIPIENT) as call:
            call.answered((await self._smtp.rcpt(mail.recipient, encoding="utf-8")).code)
        await announce()
        if not self.is_open:
            raise MailUnavailable(Phase.RECIPIENT, 0, "the connection ended before DATA")
        with mail_errors(Phase.CONTENT) as call:
            call.answered((await self._smtp.data(mail.content)).code)

    async def _name_sender(self, mail: EncodedMail) -> None:
        """Name the sender. With SMTPUTF8, which only this recipient's address needs, a refusal concerns the
        recipient.
        """
        try:
            with mail_errors(Phase.SENDER) as call:
                options = self._options(mail)
                call.answered((await self._smtp.mail(mail.sender, options=options, encoding="utf-8")).code)
        except (MailRefused, MailDeferred) as error:
            if mail.recipient.isascii():
                raise
            raise type(error)(Phase.RECIPIENT, error.status, error.text) from None

    def _options(self, mail: EncodedMail) -> list[str]:
        if not mail.needs_utf8:
            return []
        if not self._smtp.supports_extension("smtputf8"):
            raise MailRefused(Phase.RECIPIENT, 0, "the server does not accept addresses in other letters (SMTPUTF8)")
        return ["SMTPUTF8", "BODY=8BITMIME"]

    async def reset(self) -> None:
        """End the transfer of a refused message. The connection is closed if the server does not agree."""
        try:
            with mail_errors(Phase.SENDER, "RSET") as call:
                call.answered((await self._smtp.rset()).code)
        except MailError:
            self.close()

    async def quit(self) -> None:
        """Say goodbye and close, whether or not the server answers."""
        try:
            with mail_errors(Phase.CONNECT, "QUIT"):
                await self._smtp.quit(timeout=_FAREWELL)
        except MailError:
            self.close()

    def close(self) -> None:
        self._smtp.close()


class Mailer:
    """Safe for concurrent calls; at most `connections` are open. `timeout`: of each answer of the server."""

    def __init__(self, server: MailServer, timeout: timedelta = timedelta(seconds=60), connections: int = 1) -> None:
        """Prepare the connections. Raises SetupError if the file with certificates cannot be read."""
        self.server = server
        self._timeout = timeout
        self._tls: ssl.SSLContext | None = None if server.encryption is Encryption.OFF else server.tls_context()
        self._free = asyncio.Semaphore(connections)
        self._kept: list[tuple[Session, float]] = []
        self._is_closed = False

    async def send(self, message: MailMessage, announce: Announce = unannounced) -> str:
        """Return the Message-ID, without brackets, when the server has accepted the message. `announce` is awaited
        before DATA; what it raises is raised, and the message is not sent then. Raises MailError.
        """
        mail = encode(message, self.server.sender)
        async with self._free:
            await self._send(mail, announce)
        return mail.message_id

    async def check(self) -> None:
        """Connect and sign in, without a message. Raises MailError."""
        async with self._free:
            self._keep(await self._open())

    async def close(self) -> None:
        """Close the kept connections, and those in use when they become free; safe to repeat."""
        self._is_closed = True
        while self._kept:
            await self._kept.pop()[0].quit()

    async def _send(self, mail: EncodedMail, announce: Announce) -> None:
        kept = self._take_kept()
        if kept is not None:
            try:
                await self._transfer(kept, mail, announce)
                return
            except MailUnavailable as error:  # the server closed the kept connection and does not have the message
                if isinstance(error, MailSilent) and error.phase is Phase.RECIPIENT:
                    raise  # it has just answered on this connection: another one would not help
        await self._transfer(await self._open(), mail, announce)

    async def _transfer(self, session: Session, mail: EncodedMail, announce: Announce) -> None:
        try:
            await session.transfer(mail, announce)
        except (MailRefused, MailDeferred):
            await session.reset()
            raise
        except BaseException:  # also a cancellation: the server may wait for the rest of the mail
            session.close()
            raise
        finally:
            self._keep(session)

    async def _open(self) -> Session:
        return await Session.open(self.server, self._timeout, self._tls)

    def _keep(self, session: Session) -> None:
        if self._is_closed:
            session.close()
        elif session.is_open:
            self._kept.append((session, time.monotonic()))

    def _take_kept(self) -> Session | None:
        """Return the connection that was used last."""
        while self._kept:
            session, since = self._kept.pop()
            if session.is_open and time.monotonic() - since < LONGEST_IDLE:
                return session
            session.close()
        return None


class EmailSender(Protocol):
    """Transfers a mail: `couriers.email.Mailer`."""

    async def send(self, message: MailMessage) -> object: ...


class LinkCodeMailer:
    """Mails a code in the person's language, by the template `link-code`."""

    def __init__(self, mailer: EmailSender, templates: EmailTemplates | None = None) -> None:
        self._mailer = mailer
        self._templates = templates or EmailTemplates()

    async def send_code(self, to: User, channel: str, code: str, lifetime: timedelta) -> None:
        """Mail the code. A mail that may have arrived counts as sent: its reader can use the code.

        Raises NotMailed MAIL_REFUSED or MAIL_UNAVAILABLE.
        """
        title = channel_title(channel, language_of(to.locale))
        values = {"code": code, "minutes": _minutes(lifetime), "channel": title}
        await self._send(self._templates.message("link-code", to.locale, to.email or "", **values))

    async def send_sign_in_code(self, to: User, code: str, lifetime: timedelta) -> None:
        """Mail the code that signs the person in, by the template `sign-in-code`. Raises as `send_code`."""
        values = {"code": code, "minutes": _minutes(lifetime)}
        await self._send(self._templates.message("sign-in-code", to.locale, to.email or "", **values))

    async def _send(self, message: MailMessage) -> None:
        try:
            await self._mailer.send(message)
        except MailUnclear:
            return
        except MailError as fault:
            refusal = "MAIL_REFUSED" if fault.code == "MAIL_REFUSED" else "MAIL_UNAVAILABLE"
            raise NotMailed(refusal, "The code could not be mailed. Nothing was linked.") from fault


def _minutes(lifetime: timedelta) -> str:
    return str(-(-lifetime // timedelta(minutes=1)))
