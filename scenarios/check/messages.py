"""Checks the message of a `send`, as far as it is written, and what its delivery would refuse or do otherwise: whether
it is empty, its marks, its length, its buttons, its files, channels, times, tags and options.

Marks and buttons have the rules by which a delivery is accepted.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.model.content import ParseMode
from core.model.delivery import Strategy
from core.model.text.text_marks import BrokenMark, broken_mark, shown_length
from core.model.user_files import inner_path
from core.orders.check import MAX_BUTTONS
from core.orders.order import GROUPS
from couriers.channel import channels
from scenarios.bot import Bot
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, is_empty, plain
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.check.references import is_address, names_in
from scenarios.check.visible import CheckedStep
from scenarios.loader.reading import Problems, Reader
from scenarios.placeholders.parser import may_bring_marks, outline
from scenarios.placeholders.values import as_moment
from scenarios.schema import ActionType
from scenarios.schema.conditions import fields_of
from scenarios.schema.types import ATTACHMENT, FILE, has_placeholder
from scenarios.schema.variables import VariableFault, change_of
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
MESSAGES = ("send", "ask", "choose_addressees", "order")
"""The actions whose text is a message with marks."""
LINE_END = "\n"


def check_message(step: CheckedStep, settings: Mapping[str, Data], problems: Problems) -> None:
    """Check a message of one of MESSAGES. `settings`: those of the bot, which may have defaults for messages."""
    reader = Reader(step.action.place.file, problems)
    section = settings.get(step.action.type)
    defaults: Mapping[str, Data] = section if isinstance(section, Mapping) else {}
    if step.action.type == "send":
        check_anything(reader, step, defaults)
    check_buttons(reader, step.node)
    mode = step.node.get("parse_mode")
    if mode is None or not has_placeholder(mode):
        written = plain(mode) if mode else defaults.get("parse_mode")
        check_shown(reader, step.node, parse_mode(str(written or "")))
        hint = step.node.get("hint")
        if step.action.type == "ask" and isinstance(hint, Scalar):
            check_marks(reader, [hint], parse_mode(str(written or "")))


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
    check_marks(reader, texts, mode)


def check_marks(reader: Reader, texts: list[Scalar], mode: ParseMode) -> None:
    """Report marks with which a message of these texts would be refused."""
    written = "".join(str(text.value) for text in texts)
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


_LAST_ZONE = timedelta(hours=12)
"""The zone in which a day ends last is 12 hours behind UTC; a time before it is past everywhere."""


def check_sending(step: CheckedStep, bot: Bot, problems: Problems, tags: Collection[str] | None) -> None:
    """`tags`: those under which the bot schedules messages; None if a placeholder makes one."""
    reader = Reader(step.action.place.file, problems)
    if step.action.type in ("send", "copy", "order"):
        _check_channels(reader, step)
        _check_people(reader, step.node, bot)
        _check_times(reader, step.node)
    elif step.action.type == "ask":
        _check_options(reader, step, bot)
    elif step.action.type == "cancel" and tags is not None:
        for tag in names_in(reader.one_or_many(step.node.get("tag"))):
            if " ".join(tag.text.split()) not in tags:
                message = did_you_mean(sentence("no_send_schedules_message", tag=tag.text), tag.text, tags)
                reader.error(tag, "TAG_NOT_SET", message)


def tags_of(bot: Bot) -> Collection[str] | None:
    """Return the tags of all messages of a bot; None if a placeholder makes one, or the defaults have one."""
    actions = [one for scenario in bot.scenarios.values() for one in scenario.actions]
    tags = {" ".join(str(one.fields["tag"]).split()) for one in actions if one.type != "cancel" and "tag" in one.fields}
    return None if any("{" in tag for tag in tags) or "send" in bot.settings else tags


def _check_channels(reader: Reader, step: CheckedStep) -> None:
    known, node = [*channels(), *Strategy], step.node
    listed = node.get("to")
    contacts = [one.get("contacts") for one in reader.one_or_many(listed) if isinstance(one, MapNode)]
    named = [key for one in contacts if isinstance(one, MapNode) for key, _ in one.pairs]
    for name in names_in((*reader.one_or_many(node.get("channels")), *named)):
        if name.text not in known:
            message = did_you_mean(sentence("no_channel", name=name.text), name.text, known)
            reader.error(name, "UNKNOWN_CHANNEL", message)
    for one in reader.one_or_many(listed):
        channel, colon, _ = one.text.partition(":") if isinstance(one, Scalar) else ("", "", "")
        if colon and slip_of(channel, (*channels(), *GROUPS)) not in (None, channel):
            said = did_you_mean(sentence("no_channel", name=channel), channel, (*channels(), *GROUPS))
            reader.warning(one, "UNKNOWN_CHANNEL", said)
    given = node.get("channels")
    if not is_empty(given) and is_empty(listed) and given is not None and step.action.type != "order":
        reader.warning(given, "CHANNELS_WITHOUT_TO", sentence("channels_count_only"))


def _check_people(reader: Reader, node: MapNode, bot: Bot) -> None:
    """Report what `when` of `to` asks of people that the bot does not store of them."""
    for one in reader.one_or_many(node.get("to")):
        when = one.get("when") if isinstance(one, MapNode) else None
        known = [name for name in bot.declared if name.startswith("person.")]
        for field in fields_of(when) if when is not None else ():
            if field.text not in known:
                message = did_you_mean(sentence("when_variables_yaml_has", name=field.text), field.text, known)
                reader.error(field, "UNKNOWN_VARIABLE", message)


def _check_times(reader: Reader, node: MapNode) -> None:
    at, delay = node.get("deliver_at"), node.get("delay")
    if at is None or is_empty(at):
        return
    if delay is not None and not is_empty(delay):
        reader.error(delay, "TWO_TIMES", sentence("delay_deliver_at_exclude_each"))
    if _is_past(at):
        reader.error(at, "IN_THE_PAST", sentence("moment_over_message_never"))


def _is_past(node: Node) -> bool:
    moment = None if not isinstance(node, Scalar) or has_placeholder(node) else as_moment(node.text, UTC)
    if moment is None:
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < datetime.now(UTC) - _LAST_ZONE


def _check_options(reader: Reader, step: CheckedStep, bot: Bot) -> None:
    """Report the options of a question that the variable in `save` cannot store: the person could never answer."""
    save = step.node.get("save")
    name = save.text.strip() if isinstance(save, Scalar) else ""
    for option in names_in(reader.one_or_many(step.node.get("options"))) if name in bot.declared else ():
        try:
            change_of(name, option.text, bot.declared, None)
        except VariableFault as fault:
            reader.error(option, "OPTION_NOT_STORABLE", sentence("cannot_store_option", variable=name, text=fault.said))


def check_attachments(step: CheckedStep, kind: ActionType, folder: Path, problems: Problems) -> None:
    """Check the files. A missing one is a warning, as it may be made later; a file outside the folder is an error."""
    reader = Reader(step.action.place.file, problems)
    for field in kind.fields:
        if field.type in (ATTACHMENT, FILE) and (node := step.node.get(field.name)):
            for name in names_in(tuple(files_in(node))):
                check_file(reader, name, folder)


def files_in(node: Node) -> Iterator[Node]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        file = item.get("file") if isinstance(item, MapNode) else item
        if file is not None:
            yield file


def check_file(reader: Reader, name: Scalar, folder: Path) -> None:
    """Report a local file that is outside the folder or missing. A text without an ending is an id of a provider."""
    path = Path(name.text.strip())
    if is_address(name.text) or "\0" in name.text or not (path.suffix or "/" in name.text):
        return
    try:
        inside = inner_path(folder / path, folder) is not None
        missing = not (folder / path).is_file()
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        inside, missing = True, True
    if not inside:
        reader.error(
            name, "ATTACHMENT_OUTSIDE", sentence("not_sent", text=sentence("outside_bot_folder", name=name.text))
        )
    elif missing:
        reader.warning(name, "ATTACHMENT_MISSING", sentence("no_file_bot_folder", name=name.text))
