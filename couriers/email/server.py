"""The mail server that ADA_SMTP_URL describes.

smtp://user:password@host:587?from=Ada%20<ada@example.org>&starttls=required
smtps://user:password@host:465

Without `starttls` a connection of smtp:// is encrypted if the server offers it. With a password it is required, so that
no one between us and the server can switch it off and read the password; `starttls=off` allows that.
"""

import ssl
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from core.errors import Invalid, SetupError
from couriers.email.message import sender_address
from providers.web_request import tls_context

_EXAMPLE = "for example smtp://user:password@mail.example.org:587"
_SETTING = "ADA_SMTP_URL"


class Encryption(Enum):
    """The encryption of a connection. The values are `start_tls` of aiosmtplib."""

    TLS = "from the first byte"
    REQUIRED = True  # by STARTTLS, or not at all
    OFFERED = None  # by STARTTLS if the server offers it
    OFF = False


_STARTTLS = {"required": Encryption.REQUIRED, "off": Encryption.OFF}


@dataclass(frozen=True)
class MailServer:
    """`sender`: the default sender, an address or `Name <address>`. `ca`: certificates to trust beside the system's."""

    host: str
    port: int
    encryption: Encryption
    username: str
    password: str = field(repr=False)
    sender: str
    ca: Path | None = None

    @classmethod
    def parse(cls, url: str, ca: Path | None = None) -> "MailServer":
        """Read ADA_SMTP_URL and ADA_SMTP_CA. Raises SetupError, whose text does not show the password."""
        split, username, password = split_url(_SETTING, url, ("smtp", "smtps"), _EXAMPLE)
        if split.path not in ("", "/"):
            raise SetupError(f"{_SETTING} must be smtp://… or smtps://… with a host, {_EXAMPLE}")
        host, parameters = split.hostname or "", parameters_of(_SETTING, split, {"from", "starttls"})
        encryption = encryption_of(_SETTING, split.scheme, parameters.get("starttls"), has_password=bool(password))
        default_port = 465 if encryption is Encryption.TLS else 587 if username else 25
        sender = parameters.get("from") or (username if "@" in username else f"ada@{host}")
        return cls(host, split.port or default_port, encryption, username, password, _checked_sender(sender), ca)

    @property
    def account(self) -> str:
        """The account at the server, without the password."""
        return f"{self.username or sender_address(self.sender)}@{self.host}:{self.port}"

    def tls_context(self) -> ssl.SSLContext:
        """Return the system's certificates and those of `ca`. Raises SetupError if that file cannot be read."""
        return tls_context(self.ca, "ADA_SMTP_CA")


def split_url(setting: str, url: str, schemes: tuple[str, str], example: str) -> tuple[SplitResult, str, str]:
    """Return the URL of a mail server with the user and the password in it. Raises SetupError, whose text shows
    neither.
    """
    try:
        split = urlsplit(url)
        host, _ = split.hostname or "", split.port
    except ValueError:
        raise SetupError(f"{setting} is not a URL, {example}") from None
    if split.scheme not in schemes or not host or split.fragment:
        raise SetupError(f"{setting} must be {schemes[0]}://… or {schemes[1]}://… with a host, {example}")
    return split, unquote(split.username or ""), unquote(split.password or "")


def parameters_of(setting: str, split: SplitResult, known: set[str]) -> dict[str, str]:
    """Return the parameters after the question mark. One may contain a plus and spaces as they are. Raises
    SetupError.
    """
    found = dict(parse_qsl(split.query.replace("+", "%2B"), keep_blank_values=True))
    if unknown := sorted(set(found) - known):
        names = " and ".join(sorted(known))
        raise SetupError(f"{setting} has the unknown parameter {unknown[0]}; it can have {names}")
    return found


def encryption_of(setting: str, scheme: str, starttls: str | None, *, has_password: bool) -> Encryption:
    """Return how a connection is encrypted. Raises SetupError."""
    if scheme.endswith("s"):
        if starttls is not None:
            raise SetupError(f"{setting}: {scheme}:// is encrypted from the beginning; remove starttls")
        return Encryption.TLS
    if starttls is None:
        return Encryption.REQUIRED if has_password else Encryption.OFFERED
    if starttls not in _STARTTLS:
        raise SetupError(f"{setting}: starttls must be required or off")
    return _STARTTLS[starttls]


def _checked_sender(sender: str) -> str:
    try:
        sender_address(sender)
    except Invalid as error:
        raise SetupError(f"ADA_SMTP_URL: the sender {sender!r} is not an address; set from=") from error
    return sender
