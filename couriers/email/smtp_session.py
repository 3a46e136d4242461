"""One connection to a mail server, signed in."""

import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta

from aiosmtplib import SMTP

from couriers.email.errors import MailDeferred, MailError, MailRefused, MailUnavailable, Phase, mail_errors
from couriers.email.message import EncodedMail
from couriers.email.server import Encryption, MailServer

_FAREWELL = 1.0
"""Seconds that a server has to answer QUIT."""

Announce = Callable[[], Awaitable[None]]


async def unannounced() -> None:
    """Announce nothing."""


class Session:
    """Transfers one message at a time."""

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
            with mail_errors(Phase.CONNECT):
                await smtp.connect()
                await smtp.ehlo()  # again after STARTTLS (RFC 3207, 4.2)
            if server.username:
                with mail_errors(Phase.SIGN_IN):
                    await smtp.login(server.username, server.password)
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
        with mail_errors(Phase.RECIPIENT):
            await self._smtp.rcpt(mail.recipient, encoding="utf-8")
        await announce()
        if not self.is_open:
            raise MailUnavailable(Phase.RECIPIENT, 0, "the connection ended before DATA")
        with mail_errors(Phase.CONTENT):
            await self._smtp.data(mail.content)

    async def _name_sender(self, mail: EncodedMail) -> None:
        """Name the sender. With SMTPUTF8, which only this recipient's address needs, a refusal concerns the
        recipient.
        """
        try:
            with mail_errors(Phase.SENDER):
                await self._smtp.mail(mail.sender, options=self._options(mail), encoding="utf-8")
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
            with mail_errors(Phase.SENDER):
                await self._smtp.rset()
        except MailError:
            self.close()

    async def quit(self) -> None:
        """Say goodbye and close, whether or not the server answers."""
        try:
            with mail_errors(Phase.CONNECT):
                await self._smtp.quit(timeout=_FAREWELL)
        except MailError:
            self.close()

    def close(self) -> None:
        self._smtp.close()
