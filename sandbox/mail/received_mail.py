"""Reads a mail as a mail program does. Pure."""

from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTPUTF8


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """A mail as its recipient sees it. `message_id` is without angle brackets."""

    subject: str
    text: str
    html: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a mail."""

    name: str
    type: str
    content: bytes


def headers_of(content: bytes) -> list[tuple[str, str]]:
    """Return the headers of a mail, decoded, in their order."""
    return [(name, str(value)) for name, value in message_from_bytes(content, policy=SMTPUTF8).items()]


def attachments_of(content: bytes) -> list[Attached]:
    """Return the files of a mail, also those that its HTML shows."""
    mail = message_from_bytes(content, policy=SMTPUTF8)
    bodies = [mail.get_body((kind,)) for kind in ("plain", "html")]
    files = [part for part in mail.walk() if not part.is_multipart() and part not in bodies]
    return [_attached(number, part) for number, part in enumerate(files, 1)]


def _attached(number: int, part: EmailMessage) -> Attached:
    content = part.get_payload(decode=True)
    name = part.get_filename() or f"file {number}"
    return Attached(name, part.get_content_type(), content if isinstance(content, bytes) else b"")


def read_mail(content: bytes) -> ReceivedMail:
    """Read a mail as it was transferred."""
    mail = message_from_bytes(content, policy=SMTPUTF8)
    message_id = str(mail["Message-ID"] or "").strip().strip("<>")
    return ReceivedMail(str(mail["Subject"] or ""), _part(mail, "plain"), _part(mail, "html"), message_id)


def _part(mail: EmailMessage, kind: str) -> str:
    """Return the text of one kind, "" if there is none. The last line break of an only part belongs to the transfer."""
    part = mail.get_body((kind,))
    if part is None:
        return ""
    text = str(part.get_content()).replace("\r\n", "\n")
    is_only = part is mail and part["Content-Transfer-Encoding"] != "base64"
    return text.removesuffix("\n") if is_only else text
