"""A message as the bodies of the calls that send it: its text in parts, its files with the first, its buttons with the
last. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from couriers.max.keyboard import keyboard
from couriers.max.texts import MaxPart, parts
from couriers.sending import Content, Feature

MOST_FILES = 11
"""With the keyboard a message has at most 12 attachments."""

Json = dict[str, Any]
NOTHING = Content()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of one call. `shown`: the text as the person sees it."""

    json: Json
    shown: str

    def without_reply(self) -> "Body":
        return Body({name: value for name, value in self.json.items() if name != "link"}, self.shown)


@dataclass(frozen=True, slots=True)
class MaxDraft:
    """The calls of one message, in order. `not_shown`: as in `couriers.sending.Sent`."""

    bodies: Sequence[Body]
    not_shown: tuple[str, ...] = ()


def draft(text: str, content: Content = NOTHING, files: Sequence[Json] = (), missing: Sequence[str] = ()) -> MaxDraft:
    """Return the calls. `missing`: the files that could not be transferred."""
    texts, shows_marks = parts(text, content.parse_mode)
    not_shown = list(missing)
    if not shows_marks:
        not_shown.append(Feature.PARSE_MODE)
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    return MaxDraft(list(_bodies(texts, content, files)), tuple(not_shown))


def _bodies(texts: Sequence[MaxPart], content: Content, files: Sequence[Json]) -> Iterator[Body]:
    groups = [files[start : start + MOST_FILES] for start in range(0, len(files), MOST_FILES)]
    last = max(len(texts), len(groups)) - 1
    for number, (part, group) in enumerate(zip_longest(texts, groups)):
        body = _text(part) | (
            {"link": {"type": "reply", "mid": mid}} if not number and (mid := _reply(content)) else {}
        )
        buttons = keyboard(content) if number == last else None
        attachments = [*(group or ()), *([buttons] if buttons else ())]
        yield Body(body | ({"attachments": attachments} if attachments else {}), part.shown if part else "")


def _text(part: MaxPart | None) -> Json:
    if part is None:
        return {}
    return {"text": part.text, "format": "html"} if part.has_marks else {"text": part.text}


def _reply(content: Content) -> str:
    return content.reply_to.partition(",")[0]


def edited_body(text: str, content: Content, files: Sequence[Json]) -> Json | None:
    """Return the body of an edit; None if one message cannot show the content. An edit removes the buttons and files
    that it does not name.
    """
    texts, _ = parts(text, content.parse_mode)
    if len(texts) > 1 or len(files) > MOST_FILES:
        return None
    buttons = keyboard(content)
    return _text(texts[0] if texts else None) | {"attachments": [*files, *([buttons] if buttons else ())]}


def files_of(message: Json) -> list[Json]:
    """Return the files of a message as an edit that keeps them names them."""
    attachments = message["body"].get("attachments") or ()
    named = [(one["type"], (one.get("payload") or {}).get("token")) for one in attachments]
    return [{"type": kind, "payload": {"token": token}} for kind, token in named if token]
