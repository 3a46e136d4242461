"""Previews a delivery as a person will see it in a channel, by the functions that couriers use. Pure.

Called by `delivery.endpoints.sending.preview`.
"""

from collections.abc import Sequence

from msgspec import Struct

from core.courier.content.content_for_channel import NOTHING, Presented, present
from core.courier.interface import Courier, HasLimits, WritesAsText
from core.model.content import Attachment, Button, Content, Feature
from core.model.display import Display, Limits
from core.model.text.sms_parts import sms_parts
from core.model.text.text_marks import Span, cut_text, spans
from core.model.text.text_parts import split_text, utf16_length


class ShownText(Struct, frozen=True):
    """One message. `spans`: its marked ranges, in UTF-16 code units of the text."""

    text: str
    spans: Sequence[Span] = ()


class Shown(Struct, frozen=True):
    """The view of one person in one channel. `messages`: in their order, the first with the files. `parts`: SMS of all
    messages, 0 where texts are not sent in parts. `is_empty`: nothing can be sent there.
    """

    messages: Sequence[ShownText]
    buttons: Sequence[Sequence[Button]] = ()
    keyboard: Sequence[Sequence[str]] = ()
    files: Sequence[Attachment] = ()
    choices: int = 0
    not_shown: Sequence[str] = ()
    parts: int = 0
    is_empty: bool = False


def display_of(courier: Courier) -> Display:
    """Return how the channel of a courier shows deliveries."""
    as_text = courier.as_text(NOTHING) if isinstance(courier, WritesAsText) else ()
    limits = courier.limits if isinstance(courier, HasLimits) else Limits()
    return Display(courier.shows, frozenset(as_text), limits)


def shown_in(display: Display, text: str, content: Content | None) -> Shown:
    """Return what a person sees of a delivery in a channel."""
    as_text = display.written_as_text(content) if content else ()
    presented = present(text, content, display.shows, as_text)
    left = presented.content or NOTHING
    texts, was_cut = _texts(presented, display.limits)
    return Shown(
        [] if presented.is_empty else [_marked(one, left) for one in texts],
        left.inline,
        left.reply or (),
        left.attachments,
        len(presented.choices),
        (*presented.not_shown, *((Feature.TEXT_END,) if was_cut else ())),
        sum(map(sms_parts, texts)) if display.limits.in_sms else 0,
        presented.is_empty,
    )


def _texts(presented: Presented, limits: Limits) -> tuple[Sequence[str], bool]:
    """Return the texts of the messages, and whether the text was cut."""
    text, content = presented.text, presented.content
    if limits.splits_content or (content is None and limits.splits):
        plain = text if content is None else spans(text, content.parse_mode)[0]
        fits = not limits.text or utf16_length(plain) <= limits.text
        return ((text,) if fits else split_text(plain, limits.text)), False
    if content is None:
        return (text,), False
    longest = limits.caption if content.attachments else limits.text
    cut = cut_text(text, content.parse_mode, longest) if longest else text
    return (cut,), cut != text


def _marked(text: str, content: Content) -> ShownText:
    return ShownText(*spans(text, content.parse_mode))
