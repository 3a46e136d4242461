"""A message, and its form on the wire (RFC 5322, MIME); a text as HTML, a plain one or one whose marked ranges are
known. Pure.

A domain in other letters is converted to its ASCII form (IDNA). A local part in other letters needs a server with
SMTPUTF8 (RFC 6531). A text in plain ASCII is sent as it is, every other one in base64, so no server on the way has a
reason to change it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime, make_msgid, parseaddr
from html import escape
from typing import Any

from core.errors import Invalid
from core.model.contacts.addresses import ascii_email
from core.model.content import Button
from core.model.text.text_marks import Span

_LONGEST_LINE = 998

_NO_HEADER_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_MEDIA_TYPE = re.compile(r"(?:application|audio|image|text|video)/[A-Za-z0-9.+_-]{1,100}")
_OWN_HEADERS = {"from", "to", "subject", "date", "message-id", "mime-version"}
_PLAIN = re.compile(r"(?:[\t -~]{0,900}\n)*[\t -~]{0,900}")  # RFC 5322, 2.1.1: a line has at most 998 characters

_LINK = re.compile(r"(https?://[^\s<>\"'«»“”]*[^\s<>\"'«»“”.,;:!?)\]}…])")
_PAGE = '<!doctype html>\n<html><head><meta charset="utf-8"></head><body><div>{}</div></body></html>\n'
_TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strikethrough": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_BUTTON = (
    "display:inline-block;margin:4px 8px 4px 0;padding:12px 20px;border-radius:8px;background:#1f5fbf;color:#ffffff;"
    "font-weight:600;text-decoration:none"
)
_TARGET = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
PLACE = "\ue000"
"""Stands for the marked text in a page; of the private use area, so no text needs it."""


class HeaderPolicy(EmailPolicy):
    """Writes headers of one line as they are, and encodes the others word by word (RFC 2047).

    The library's own policy encodes long words of ASCII headers, such as URLs, which mail programs do not read then,
    and loses or doubles spaces of encoded subjects (Python 3.11). So a header is written in one line if it can be, as
    RFC 5322, 2.1.1 allows up to 998 characters, and otherwise by `email.header`.
    """

    def header_store_parse(self, name: str, value: Any) -> tuple[str, Any]:
        """Keep a text as it is: the library decodes what looks like an encoded word."""
        return (name, value) if isinstance(value, str) else super().header_store_parse(name, value)

    def fold_binary(self, name: str, value: Any) -> bytes:
        line = f"{name}: {value}"
        if _fits(line) and (self.utf8 or line.isascii()):
            return line.encode() + b"\r\n"
        if hasattr(value, "addresses"):
            value = ", ".join(f"{_encoded(name, one.display_name)} <{one.addr_spec}>" for one in value.addresses)
        else:
            value = _encoded(name, str(value))
        return f"{name}: {value}\r\n".encode()


def _encoded(name: str, text: str) -> str:
    """Return the encoded words of a text, in lines of the usual length."""
    return Header(text, "utf-8", header_name=name).encode(linesep="\r\n")


def _fits(line: str) -> bool:
    """Return whether it is short enough, and has nothing that looks like an encoded word."""
    return len(line.encode()) <= _LONGEST_LINE and "=?" not in line


ASCII_HEADERS = HeaderPolicy(linesep="\r\n")
UTF8_HEADERS = HeaderPolicy(linesep="\r\n", utf8=True)


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file that is attached. `media_type`: such as image/png. Raises Invalid LINE_BREAK."""

    name: str
    media_type: str
    data: bytes

    def __post_init__(self) -> None:
        _refuse_control_characters("files", self.name)
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise Invalid("MEDIA_TYPE_MALFORMED", f"{self.media_type!r} is no media type.", "files")


@dataclass(frozen=True, slots=True)
class MailMessage:
    """One message to one address. `sender`: `address` or `Name <address>`, "" for the server's default.

    `message_id`: what is to stand before the @, the same for a repeat of the message; "" for a random one.
    `bounce_to`: the envelope sender, "" for the sender. Raises Invalid: EMAIL_MALFORMED for an address,
    LINE_BREAK for a header with a line break or another control character.
    """

    to: str
    subject: str
    text: str
    html: str = ""
    sender: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    message_id: str = ""
    files: Sequence[MailFile] = ()
    bounce_to: str = ""

    def __post_init__(self) -> None:
        checked_address(self.to)
        if self.bounce_to:
            checked_address(self.bounce_to)
        if self.sender:
            split_sender(self.sender)
        for path, text in {"subject": self.subject, "message_id": self.message_id, **self.headers}.items():
            _refuse_control_characters(path, text)
        for name in self.headers:
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
                raise Invalid("HEADER_MALFORMED", f"{name!r} is not the name of a further header.", "headers")


@dataclass(frozen=True, slots=True)
class EncodedMail:
    """A message as it is transferred. `sender`: of the envelope. `needs_utf8`: an address has a local part that is not
    ASCII.
    """

    message_id: str  # without angle brackets
    sender: str
    recipient: str
    content: bytes
    needs_utf8: bool


def encode(message: MailMessage, default_sender: str) -> EncodedMail:
    """Return the message as it is transferred."""
    name, sender = split_sender(message.sender or default_sender)
    recipient = checked_address(message.to)
    needs_utf8 = not (sender + recipient).isascii()
    message_id = full_message_id(message.message_id, sender)
    mail = EmailMessage(policy=UTF8_HEADERS if needs_utf8 else ASCII_HEADERS)
    mail["From"] = _header_address(sender, name)
    mail["To"] = _header_address(recipient)
    mail["Subject"] = message.subject.strip(" ")
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = f"<{message_id}>"
    for header, text in message.headers.items():
        mail[header] = text
    _add_parts(mail, message)
    return EncodedMail(message_id, message.bounce_to or sender, recipient, mail.as_bytes(), needs_utf8)


def full_message_id(identifier: str, sender: str) -> str:
    """Return a Message-ID in the domain of the sender, without angle brackets."""
    domain = sender.rpartition("@")[2]
    return f"{identifier}@{domain}" if identifier else make_msgid(domain=domain).strip("<>")


def _add_parts(mail: EmailMessage, message: MailMessage) -> None:
    content, form = _content(message.text)
    mail.set_content(content, maintype="text", subtype="plain", **form)
    if message.html:
        content, form = _content(message.html)
        mail.add_alternative(content, maintype="text", subtype="html", **form)
    for file in message.files:
        main, _, sub = file.media_type.partition("/")
        mail.add_attachment(file.data, maintype=main, subtype=sub, filename=_parameter(file.name))


def _parameter(name: str) -> Any:
    """Return a file name as a parameter of a header: in the form of RFC 2231 if it would be read as an encoded word or
    an address. The library chooses the form of all others.
    """
    return ("utf-8", "", name) if "=?" in name or name.startswith("<") else name


def _content(text: str) -> tuple[bytes, dict[str, Any]]:
    """Return the octets of a text, and how they are transferred."""
    if _PLAIN.fullmatch(text):
        return text.encode(), {"cte": "7bit", "params": {"charset": "utf-8"}}
    return re.sub("\r?\n", "\r\n", text).encode(), {"cte": "base64", "params": {"charset": "utf-8"}}


def _header_address(address: str, name: str = "") -> Address:
    local, _, domain = address.rpartition("@")
    return Address(name, local, domain)


def checked_address(written: str) -> str:
    """Return the address with its domain in ASCII. Raises Invalid EMAIL_MALFORMED."""
    address = ascii_email(written)
    if address is None:
        raise Invalid("EMAIL_MALFORMED", f"{written!r} is not an e-mail address.", "email")
    return address


def split_sender(sender: str) -> tuple[str, str]:
    """Return name and address of `Name <address>`. Raises Invalid."""
    _refuse_control_characters("sender", sender)
    name, address = parseaddr(sender)
    return name, checked_address(address)


def sender_address(sender: str) -> str:
    """Return the address of `Name <address>`. Raises Invalid."""
    return split_sender(sender)[1]


def _refuse_control_characters(path: str, text: str) -> None:
    if _NO_HEADER_TEXT.search(text):
        raise Invalid("LINE_BREAK", "A header of a mail has no line breaks and no control characters.", path)


def html_of(text: str) -> str:
    """Return a page that shows the text as it is; its URLs of http and https are links. All markup is escaped."""
    return _PAGE.format(_with_links(text))


def html_of_marked(around: str, text: str, spans: Sequence[Span], buttons: Sequence[Button] = ()) -> str:
    """Return a page that shows `around`, a plain text with `PLACE` in it, and in that place the marked text, behind it
    the buttons, each with an address. Links lead to http, https and mailto only. All markup of the texts is escaped.
    """
    below = f"<p>{''.join(map(_button, buttons))}</p>" if buttons else ""
    return html_of(around).replace(PLACE, "".join(_marked(text, spans)) + below)


def _button(button: Button) -> str:
    return f'<a href="{escape(button.url)}" style="{_BUTTON}">{escape(button.text)}</a>'


def _marked(text: str, spans: Sequence[Span]) -> Iterator[str]:
    """Emit the text with tags: offsets are in UTF-16 code units, and spans lie within each other, the inner one
    first."""
    units, position, links = text.replace(PLACE, "").encode("utf-16-le", "surrogatepass"), 0, 0
    for offset, is_start, _, _, span in sorted(_edges(spans), key=lambda edge: edge[:4]):
        piece = units[2 * position : 2 * offset].decode("utf-16-le", "replace")
        yield _shown(piece) if links else _with_links(piece)
        yield _tag(span, is_start=bool(is_start))
        position, links = offset, links + (2 * is_start - 1 if span.kind in ("link", "code", "pre") else 0)
    yield _with_links(units[2 * position :].decode("utf-16-le", "replace"))


def _edges(spans: Sequence[Span]) -> Iterator[tuple[int, int, int, int, Span]]:
    """Yield the edges of all spans with their order: ends before starts; of the ends the innermost first, of the starts
    the outermost.
    """
    for number, span in enumerate(spans):
        yield span.offset, 1, -span.length, -number, span
        yield span.offset + span.length, 0, -span.offset, number, span


def _tag(span: Span, *, is_start: bool) -> str:
    if span.kind == "link" and _TARGET.fullmatch(span.target):
        return f'<a href="{escape(span.target)}">' if is_start else "</a>"
    tag = _TAGS.get(span.kind)
    return f"<{'' if is_start else '/'}{tag}>" if tag else ""


def _with_links(text: str) -> str:
    pieces = _LINK.split(text)  # every second one is a link
    return "".join(_link(piece) if number % 2 else _shown(piece) for number, piece in enumerate(pieces))


def _link(url: str) -> str:
    return f'<a href="{escape(url)}">{escape(url)}</a>'


def _shown(text: str) -> str:
    """Return a text as HTML, which shows a line break and a second space only if they are written so."""
    return escape(text).replace("  ", " &nbsp;").replace("\n", "<br>\n")
