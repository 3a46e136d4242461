"""Rules for the content of a delivery. Pure.

Each refusal is an `Invalid` with a stable code and the path of the field.
"""

from collections.abc import Iterator
from itertools import chain

from core.directory.records import raise_first
from core.errors import Invalid
from core.model.content import Attachment, Button, Content, ParseMode
from core.model.delivery import NewDelivery
from core.model.json_form import compact_json
from core.model.text.characters import is_blank
from core.model.text.text_marks import broken_mark, tokens

MAX_SIZE = 32_768
"""Bytes of the content as JSON; the files themselves do not count."""

MAX_BUTTONS = 100
"""Of each kind, inline and reply: what Telegram accepts."""

MAX_ATTACHMENTS = 50


def check_content(delivery: NewDelivery) -> None:
    """Check the content of a delivery. Raises Invalid TOO_MANY_BUTTONS, BUTTON_MALFORMED, TOO_MANY_ATTACHMENTS,
    ATTACHMENT_MALFORMED, CONTENT_TOO_LARGE, TEXT_EMPTY, MARKS_BROKEN. Only a text with attachments may be empty, or one
    with an edit, which then changes the buttons.
    """
    raise_first(faults_of_content(delivery))


def faults_of_content(delivery: NewDelivery) -> Iterator[Invalid]:
    """Emit the faults of the content of a delivery."""
    content = delivery.content or Content()
    yield from _button_errors(content)
    yield from _attachment_errors(content)
    if len(compact_json(content).encode()) > MAX_SIZE:
        yield Invalid("CONTENT_TOO_LARGE", f"At most {MAX_SIZE} bytes of content are allowed.", "content")
    if not (_shows_text(delivery.text, content.parse_mode) or content.attachments or (content.edit and content.inline)):
        yield Invalid("TEXT_EMPTY", "A text without attachments shows at least one character.", "text")
    if broken := broken_mark(delivery.text, content.parse_mode):
        detail = f"The text cannot be read as {content.parse_mode}: character {broken.position}: {broken.reason}."
        yield Invalid("MARKS_BROKEN", detail, "text")


def _shows_text(text: str, mode: ParseMode) -> bool:
    return any(not is_blank(token.shown) for token in tokens(text, mode))


def _button_errors(content: Content) -> Iterator[Invalid]:
    for name, rows in (("inline", content.inline), ("reply", content.reply or ())):
        if sum(map(len, rows)) > MAX_BUTTONS:
            yield Invalid("TOO_MANY_BUTTONS", f"At most {MAX_BUTTONS} buttons are allowed.", f"content.{name}")
    if not all(map(_is_valid_button, chain.from_iterable(content.inline))):
        detail = "A button has a text, and either data or a url."
        yield Invalid("BUTTON_MALFORMED", detail, "content.inline")
    if any(is_blank(text) for text in chain.from_iterable(content.reply or ())):
        yield Invalid("BUTTON_MALFORMED", "A button has a text.", "content.reply")
    if not set(content.request_contact) <= set(chain.from_iterable(content.reply or ())):
        yield Invalid("BUTTON_MALFORMED", "It names buttons of reply.", "content.request_contact")


def _is_valid_button(button: Button) -> bool:
    return not is_blank(button.text) and bool(button.data) != bool(button.url)


def _attachment_errors(content: Content) -> Iterator[Invalid]:
    path = "content.attachments"
    if len(content.attachments) > MAX_ATTACHMENTS:
        yield Invalid("TOO_MANY_ATTACHMENTS", f"At most {MAX_ATTACHMENTS} attachments are allowed.", path)
    for number, one in enumerate(content.attachments):
        if not _has_one_source(one):
            detail = "An attachment has exactly one of path, url, provider_id and file; a path is absolute."
            yield Invalid("ATTACHMENT_MALFORMED", detail, f"{path}.{number}")


def _has_one_source(attachment: Attachment) -> bool:
    sources = [
        source for source in (attachment.path, attachment.url, attachment.provider_id, attachment.file) if source
    ]
    return len(sources) == 1 and (not attachment.path or attachment.path.startswith("/"))
