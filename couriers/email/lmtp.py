"""Receives mails over LMTP (RFC 2033): a mail server on the same machine or network delivers each mail that comes to
the address of replies.

An answer belongs to each recipient: 250 once the mail is in the queue, so the mail server may forget it; 4xx to have
it handed over again; 5xx to have it returned to its author. No other address is accepted, so nothing is relayed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Envelope, Session

from core.deliveries.reply_addresses import tokens_in
from core.errors import Refused, StoreError
from couriers.email.mailbox import MOST_BYTES

log = logging.getLogger(__name__)

Take = Callable[[bytes, Sequence[str]], Awaitable[object]]
"""Takes a mail for recipients of its envelope. Raises Refused, StoreError."""

_ANSWERS = {
    "MAIL_TOKEN_WRONG": "550 5.1.1 This address was not made here, or is no longer valid",
    "MAIL_MALFORMED": "554 5.6.0 This cannot be read as a mail",
    "EVENT_TOO_LARGE": "552 5.3.4 The words of this mail are too long",
}
_OTHER_REFUSAL = "554 5.7.1 This mail was not accepted"
_LATER = "451 4.3.0 The store cannot be reached; try again later"
_STRANGE = "550 5.1.1 No such mailbox here"


class LmtpServer:
    """Listens from `start` to `stop`. `mailbox`: the address of the settings, such as reply@school.example."""

    def __init__(self, mailbox: str, take: Take, host: str, port: int, *, share_port: bool = False) -> None:
        self._mailbox = mailbox
        self._take = take
        self._host, self.port = host, port
        self._share_port = share_port
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; port 0 takes a free one. Raises OSError if the port is taken."""
        logging.getLogger("mail.log").setLevel(logging.ERROR)  # aiosmtpd logs every command
        loop = asyncio.get_running_loop()

        def connection() -> LMTP:
            return LMTP(self, data_size_limit=MOST_BYTES, enable_SMTPUTF8=True, hostname="ada", ident="ada", loop=loop)

        port = self._share_port or None
        self._server = await loop.create_server(connection, self._host, self.port, reuse_port=port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no longer; a mail that is being handed over is handed over again."""
        if self._server:
            self._server.close()

    async def handle_RCPT(  # noqa: N802, aiosmtpd calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Sequence[Any]
    ) -> str:
        """Accept an address of replies."""
        if not tokens_in(self._mailbox, [address]):
            return _STRANGE
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a mail, once for each recipient; return an answer for each."""
        content = envelope.content
        raw = content if isinstance(content, bytes) else (content or "").encode()
        return "\r\n".join([await self._answer(raw, one) for one in envelope.rcpt_tos])

    async def _answer(self, raw: bytes, recipient: str) -> str:
        try:
            return f"250 2.0.0 {await self._take(raw, [recipient])}"
        except Refused as refusal:
            return _ANSWERS.get(refusal.code, _OTHER_REFUSAL)
        except StoreError as fault:
            log.warning("email: a mail could not be taken over LMTP: %s", fault)
            return _LATER
