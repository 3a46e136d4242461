"""Receives mails: by LMTP (RFC 2033) from a mail server, or over IMAP (RFC 3501) from a mailbox.

LMTP: the mail server is on the same machine or network, and delivers each mail that comes to the address of replies. An
answer belongs to each recipient: 250 once the mail is in the queue, so the mail server may forget it; 4xx to have it
handed over again; 5xx to have it returned to its author. No other address is accepted, so nothing is relayed.

IMAP: nothing changes in the mailbox. A `Mailbox` is a source of `couriers.receiving.poller`: each poll gives one mail.
A position names the newest mail that was read, by its UID and by the UIDVALIDITY of the folder. If the server counts
its mails anew, the mails of the day of the newest one are read again, and those that were taken are recognised by their
names. imaplib is synchronous: each call runs in a thread.
"""

import asyncio
import imaplib
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Envelope, Session

from core.deliveries.received import tokens_in
from core.errors import AdaError, Refused, SetupError, StoreError
from couriers.email.server import Encryption, encryption_of, parameters_of, split_url
from couriers.receiving.poller import Page
from providers.web_request import tls_context

log = logging.getLogger(__name__)

SETTING = "ADA_IMAP_URL"
MOST_BYTES = 20 * 1024 * 1024
"""Of a mail. Of a larger one only its beginning is read, so its words are passed on and its files are not."""
_EXAMPLE = "for example imaps://reply%40school.example:password@imap.school.example"
_REACHED = timedelta(seconds=60)
"""How long an answer of the server may take."""
_FIRST_DAYS = timedelta(days=1)
"""When nothing was read yet, the mails of these days are read."""
_BEGINNING = 256 * 1024
_REFUSED_PAUSE = 300.0
"""Seconds before a refused password is tried again: servers lock an account after some attempts."""
ACCOUNT_REMEDY = (
    "check user, password and folder; large providers want an app password, and IMAP switched on in their settings"
)
CERTIFICATE_REMEDY = "set ADA_SMTP_CA to a file with the certificate of its authority, or write the server's full name"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_T = TypeVar("_T")
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")

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


class MailboxFault(AdaError):
    """The mailbox cannot be read now."""

    code = "MAILBOX_UNAVAILABLE"


class MailboxRefused(MailboxFault):
    """The server refuses the user, or has no such folder."""


class MailboxUntrusted(MailboxFault):
    """The certificate of the server is of no known authority, or has another name."""


@dataclass(frozen=True)
class ImapServer:
    """`ca`: certificates to trust beside the system's."""

    host: str
    port: int
    encryption: Encryption
    username: str
    password: str = field(repr=False)
    folder: str
    ca: Path | None = None

    @classmethod
    def parse(cls, url: str, ca: Path | None = None) -> "ImapServer":
        """Read ADA_IMAP_URL and ADA_SMTP_CA. Raises SetupError, whose text does not show the password."""
        split, username, password = split_url(SETTING, url, ("imap", "imaps"), _EXAMPLE)
        if not username or not password:
            raise SetupError(f"{SETTING} needs a user and a password, {_EXAMPLE}")
        folder = split.path.removeprefix("/") or "INBOX"
        if not folder.isascii() or not folder.isprintable():
            raise SetupError(f"{SETTING}: write the folder as the server names it, in ASCII letters")
        parameters = parameters_of(SETTING, split, {"starttls"})
        encryption = encryption_of(SETTING, split.scheme, parameters.get("starttls"), has_password=True)
        default_port = 993 if encryption is Encryption.TLS else 143
        return cls(split.hostname or "", split.port or default_port, encryption, username, password, folder, ca)

    @property
    def account(self) -> str:
        """The account at the server, without the password."""
        return f"{self.username}@{self.host}:{self.port}/{self.folder}"


class Mailbox:
    """One per process. `pause`: seconds between two polls of a folder without new mails."""

    faults: tuple[type[Exception], ...] = (MailboxFault,)

    def __init__(self, server: ImapServer, pause: float = 15.0) -> None:
        self._server = server
        self._pause = pause
        self._client: imaplib.IMAP4 | None = None
        self._validity = ""
        self._is_refused = False

    async def sign_in(self) -> str:
        """Return the account, as it is part of a key."""
        return self._server.account

    async def check(self) -> int:
        """Sign in, and return how many mails the folder has. Raises MailboxFault."""
        try:
            return await self._call(self._open)
        finally:
            self.close()

    async def poll(self, position: str) -> Page:
        """Return the next mail, as `{"mail": bytes, "is_whole": bool}`; wait until there is one. Raises
        MailboxFault.
        """
        if self._is_refused:
            await asyncio.sleep(_REFUSED_PAUSE)
        while True:
            page = await self._call(lambda: self._next(position))
            if page.events or page.position != position:
                return page
            await asyncio.sleep(self._pause)

    def close(self) -> None:
        """Break the connection, also while a thread waits for an answer."""
        client, self._client = self._client, None
        if client:
            with suppress(OSError):
                client.shutdown()

    async def _call(self, call: Callable[[], _T]) -> _T:
        is_over = False
        try:
            found = await asyncio.to_thread(self._run, call)
            is_over = True
            return found
        finally:
            if not is_over:  # also if it was cancelled: the thread ends then
                self.close()

    def _run(self, call: Callable[[], _T]) -> _T:
        """Return what a call returns. Raises MailboxFault."""
        self._is_refused = False
        server = self._server
        try:
            return call()
        except MailboxRefused:
            self._is_refused = True
            raise
        except SetupError as fault:
            raise MailboxFault(str(fault)) from None
        except ssl.SSLCertVerificationError as fault:
            raise MailboxUntrusted(f"the certificate of {server.host} is not trusted: {fault.verify_message}") from None
        except (OSError, imaplib.IMAP4.error) as fault:
            place = f"{server.host}:{server.port}"
            raise MailboxFault(f"the mailbox at {place} cannot be read: {_words(fault)}") from None

    def _open(self) -> int:
        """Connect, sign in and open the folder for reading; return how many mails it has."""
        server, seconds = self._server, _REACHED.total_seconds()
        context = tls_context(server.ca, "ADA_SMTP_CA")
        if server.encryption is Encryption.TLS:
            self._client = imaplib.IMAP4_SSL(server.host, server.port, ssl_context=context, timeout=seconds)
        else:
            self._client = imaplib.IMAP4(server.host, server.port, timeout=seconds)
        client = self._client
        if server.encryption is Encryption.REQUIRED:
            client.starttls(context)
        try:
            if "AUTH=PLAIN" in client.capabilities:
                secret = f"\0{server.username}\0{server.password}".encode()
                client.authenticate("PLAIN", lambda _: secret)
            else:
                client.login(server.username, server.password)
        except client.abort:
            raise
        except (client.error, UnicodeEncodeError) as fault:
            raise MailboxRefused(f"the mail server refuses {server.username}: {_words(fault)}") from None
        return self._open_folder(client)

    def _open_folder(self, client: imaplib.IMAP4) -> int:
        name = self._server.folder.replace("\\", "\\\\").replace('"', '\\"')
        state, found = client.select(f'"{name}"', readonly=True)
        if state != "OK":
            raise MailboxRefused(f"the folder {self._server.folder} cannot be opened: {_text(found)}")
        self._validity = _text(client.response("UIDVALIDITY")[1])
        return int(found[0] or 0)

    def _next(self, position: str) -> Page:
        if self._client is None:
            self._open()
        else:
            self._client.noop()  # some servers report new mails only then
        validity, _, rest = position.partition(":")
        last, _, day = rest.partition(":")
        today = datetime.now(UTC).date()
        if position and validity == self._validity:
            # the server gives the newest mail also if its number is lower
            new = [uid for uid in self._search(f"UID {int(last) + 1}:*") if uid > int(last)]
        else:
            last = str(max(self._search("ALL"), default=0))
            new = self._search(f"SINCE {_since(day)}")
            position = f"{self._validity}:{last}:{today}"
        if not new:
            return Page([], position)
        uid = min(new)
        mail = self._fetch(uid)
        return Page([mail] if mail else [], f"{self._validity}:{uid}:{today}")

    def _search(self, criterion: str) -> list[int]:
        return [int(one) for one in _text(self._answer("SEARCH", criterion)).split()]

    def _fetch(self, uid: int) -> dict[str, Any] | None:
        """Return a mail; None if it was deleted meanwhile."""
        found = self._answer("FETCH", str(uid), f"(RFC822.SIZE BODY.PEEK[]<0.{MOST_BYTES}>)")
        part = next((one for one in found if isinstance(one, tuple)), None)
        if part is None:
            return None
        described = b" ".join(one if isinstance(one, bytes) else one[0] for one in found if one)
        size = _SIZE.search(described)
        is_whole = size is None or int(size[1]) <= MOST_BYTES
        return {"mail": part[1] if is_whole else part[1][:_BEGINNING], "is_whole": is_whole}

    def _answer(self, command: str, *arguments: str) -> list[Any]:
        if self._client is None:
            raise MailboxFault("the connection was closed")
        state, found = self._client.uid(command, *arguments)
        if state != "OK":
            raise MailboxFault(f"the mail server refuses {command}: {_text(found)}")
        return found


def _since(day: str) -> str:
    """Return the day from which on mails are read, as IMAP writes it. `day`: that of the newest mail that was read."""
    first = date.fromisoformat(day) if day else datetime.now(UTC).date()
    one = first - _FIRST_DAYS
    return f"{one.day}-{_MONTHS[one.month - 1]}-{one.year}"


def _text(found: list[Any]) -> str:
    """Return what a server says, in one line."""
    return " ".join(one.decode(errors="replace") for one in found if isinstance(one, bytes))


def _words(fault: BaseException) -> str:
    said = fault.args[0] if fault.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(fault)
    return " ".join(text.split()) or type(fault).__name__


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
