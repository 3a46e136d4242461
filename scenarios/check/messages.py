"""Checks the message of a `send`, as far as it is written: whether it is empty, its marks, its length, its buttons.

Marks and buttons have the rules by which a delivery is accepted.
"""

from collections.abc import Callable, Mapping

from core.model.content import ParseMode
from core.model.text.text_marks import BrokenMark, broken_mark, shown_length
from core.orders.check import MAX_BUTTONS
from scenarios.bot.data import Data
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.nodes import MapNode, Node, Scalar, is_empty, plain
from scenarios.check.step import CheckedStep
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.placeholders.mentions import may_bring_marks, outline
from scenarios.schema.types import has_placeholder
from scenarios.sending.message import (
    LONGEST_CAPTION,
    LONGEST_TEXT,
    MessageAttributes,
    inline_rows,
    message,
    parse_mode,
    refusal_of,
    reply_keyboard,
)
from scenarios.words import Sentence, placed, sentence

CONTENTS = ("text", "additional_text", "attachment")
LINE_END = "\n"


def check_message(step: CheckedStep, settings: Mapping[str, Data], problems: Problems) -> None:
    """Check a message. `settings`: those of the bot, which may have defaults for messages."""
    reader = Reader(step.action.place.file, problems)
    section = settings.get("send")
    defaults: Mapping[str, Data] = section if isinstance(section, Mapping) else {}
    check_anything(reader, step, defaults)
    check_buttons(reader, step.node)
    mode = step.node.get("parse_mode")
    if mode is None or not has_placeholder(mode):
        written = plain(mode) if mode else defaults.get("parse_mode")
        check_shown(reader, step.node, parse_mode(str(written or "")))


def check_anything(reader: Reader, step: CheckedStep, defaults: Mapping[str, Data]) -> None:
    """Check that a message has a text or a file: without both it always fails, unless an action before has returned one
    (C-32, C-47).
    """
    has_content = any(not is_blank(step.node.get(name)) or defaults.get(name) for name in CONTENTS)
    if has_content or not step.seen.is_known or not step.seen.chain.isdisjoint(CONTENTS):
        return
    if step.seen.unchained.isdisjoint(CONTENTS):
        message = sentence("message_has_neither_text")
    else:
        message = sentence("message_has_no_text")
    reader.warning(step.node, "EMPTY_SEND", message)


def is_blank(node: Node | None) -> bool:
    return is_empty(node) or (isinstance(node, Scalar) and not str(node.value).strip())


_MADE: Mapping[str, Callable[[Data], MessageAttributes]] = {
    "inline": lambda rows: MessageAttributes("x", inline=inline_rows(rows)),
    "reply": lambda rows: MessageAttributes("x", reply=reply_keyboard(rows)),
}


_REFUSALS = {
    **{(name, "TOO_MANY_BUTTONS"): sentence("most_buttons_allowed", most=MAX_BUTTONS) for name in _MADE},
    ("inline", "BUTTON_MALFORMED"): sentence("button_has_text_either"),
    ("reply", "BUTTON_MALFORMED"): sentence("button_has_text"),
}
"""The refusals of a delivery for authors, by keyboard and code."""


def check_buttons(reader: Reader, node: MapNode) -> None:
    """Report keyboards that no delivery may have."""
    for name in _MADE:
        keyboard = node.get(name)
        said = message(_MADE[name](plain(keyboard))) if keyboard else None
        if keyboard and said and (refusal := refusal_of(said)):
            reader.error(keyboard, refusal.code, placed(name, _REFUSALS.get((name, refusal.code), refusal.detail)))


def check_shown(reader: Reader, node: MapNode, mode: ParseMode) -> None:
    """Check the text and the additional text, which are one message."""
    texts = [text for name in CONTENTS[:2] if isinstance(text := node.get(name), Scalar) and not is_blank(text)]
    written = "".join(str(text.value) for text in texts)
    length = shown_length(outline(written, ""), mode)
    check_length(reader, texts, length, is_caption=not is_blank(node.get("attachment")))
    if broken := broken_mark(outline(written, "x"), mode):
        at = texts[0] if broken.position <= len(str(texts[0].value)) else texts[-1]
        report = reader.warning if may_bring_marks(written, FIELDS) else reader.error
        report(at, "MARKS_BROKEN", unreadable(written, mode, broken))


def unreadable(text: str, mode: ParseMode, broken: BrokenMark) -> Sentence:
    """Return why a text cannot be read, with the place as people find it."""
    before = text[: broken.position - 1]
    character = len(before) - before.rfind(LINE_END)
    if LINE_END not in text.rstrip():
        return sentence("text_cannot_read_character", mode=mode, character=character, text=broken.reason)
    line = before.count(LINE_END) + 1
    return sentence("text_cannot_read_line", mode=mode, line=line, character=character, text=broken.reason)


def check_length(reader: Reader, texts: list[Scalar], length: int, *, is_caption: bool) -> None:
    """Warns of a text of which people will not see the end (C-46)."""
    longest = LONGEST_CAPTION if is_caption else LONGEST_TEXT
    if length > longest:
        code = "caption_cut" if is_caption else "text_cut"
        reader.warning(texts[0], "TEXT_TOO_LONG", sentence(code, length=length, most=longest))
