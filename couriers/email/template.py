"""Templates of mails: files `<name>.<locale>.txt`.

    Subject: {code} is your code
    From: Ada <ada@example.org>         optional

    The text, with {placeholders}.

A file of the same name in the operator's folder (ADA_MAIL_TEMPLATES) replaces the one in `couriers/email/templates`.
All are read and checked at the start. Values are inserted as they are: braces in a value are not placeholders.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import Invalid, SetupError
from core.model.user_files import inner_path
from core.sentence import language_of
from couriers.email.message import MailMessage, sender_address

LOCALES = ("ru", "en")
PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "link-code": frozenset({"code", "minutes", "channel"}),
    "sign-in-code": frozenset({"code", "minutes"}),
    "message": frozenset({"text", "beginning", "settings"}),
}
"""The templates, and the placeholders that each may have."""

_BUILT_IN = Path(__file__).with_name("templates")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_HEADERS = {"Subject", "From"}


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """One file. `sender` is "" if it names none."""

    subject: str
    sender: str
    text: str


class EmailTemplates:
    """All templates in all languages. Raises SetupError for a file that is not a template."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None and not folder.is_dir():
            raise SetupError(f"ADA_MAIL_TEMPLATES is {folder}, which is not a folder")
        self._templates = {
            (name, locale): _read(_file(folder, f"{name}.{locale}.txt"), allowed)
            for name, allowed in PLACEHOLDERS.items()
            for locale in LOCALES
        }

    def message(self, name: str, locale: str | None, to: str, **values: str) -> MailMessage:
        """Return the message of a template to one address, in the language of a locale, else of the installation.

        Raises Invalid for an address or a subject that cannot be sent.
        """
        template = self._templates[name, language_of(locale)]
        return MailMessage(to, _fill(template.subject, values), _fill(template.text, values), sender=template.sender)


def _file(folder: Path | None, name: str) -> Path:
    """Return the operator's file, or else ours. Raises SetupError for a link out of the operator's folder."""
    if folder is None or not (folder / name).is_file():
        return _BUILT_IN / name
    if inner_path(folder / name, folder) is None:
        raise SetupError(f"the mail template {folder / name} is a link out of its folder; it is not followed")
    return folder / name


def _read(file: Path, allowed: frozenset[str]) -> EmailTemplate:
    try:
        template = _parse(file.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:
        raise SetupError(f"the mail template {file} cannot be used: {error}") from None
    for found in _PLACEHOLDER.findall(template.subject + template.text):
        if found not in allowed:
            raise SetupError(f"the mail template {file} has {{{found}}}; it can have {', '.join(sorted(allowed))}")
    return template


def _parse(content: str) -> EmailTemplate:
    """Read a template. Raises ValueError with the mistake."""
    head, _, text = content.partition("\n\n")
    headers = dict(_header(line) for line in head.splitlines())
    if "Subject" not in headers:
        raise ValueError("its first line must be `Subject: …`, and an empty line must follow")
    sender = headers.get("From", "")
    try:
        _ = sender_address(sender) if sender else None
    except Invalid as error:
        raise ValueError(f"From: {error}") from error
    return EmailTemplate(headers["Subject"], sender, text.removesuffix("\n"))


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    if name not in _HEADERS:
        raise ValueError(f"{line!r} is neither `Subject: …` nor `From: …`")
    return name, value.strip()


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
