"""Numbered choices: what a channel without buttons shows in their place, and which button an answer means. Pure.

Which day?
1. Today                        Button("Today", data="today")
2. Tomorrow                     Button("Tomorrow", data="tomorrow")
Site: https://example.org       Button("Site", url="https://example.org")
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from core.model.content import Button, Content

MOST_CHOICES = 99
_ANSWER = re.compile(r"\s*([1-9][0-9]?)\s*[.)]?\s*")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Button])


def choices_of(content: Content) -> list[Button]:
    """Return the buttons that a number means, in order. One of the reply keyboard has no data: a press writes its
    text."""
    inline = [button for row in content.inline for button in row if not button.url]
    return [*inline, *(Button(label) for row in content.reply or () for label in row)][:MOST_CHOICES]


def choice_lines(content: Content) -> list[str]:
    """Return the lines that show all buttons: choices with their number, addresses with their text."""
    numbered = [f"{number}. {button.text}" for number, button in enumerate(choices_of(content), 1)]
    return [*numbered, *_links(content)]


def _links(content: Content) -> Iterator[str]:
    for row in content.inline:
        yield from (f"{button.text}: {button.url}" for button in row if button.url)


def encode_choices(choices: Sequence[Button]) -> str:
    return _encoder.encode(choices).decode()


def may_be_answer(text: str) -> bool:
    """Return whether a text has the form of an answer: a number, perhaps with a full stop or a bracket behind it."""
    return _ANSWER.fullmatch(text) is not None


def chosen(encoded: str, text: str) -> Button | None:
    """Return the button that an answer means; None if it is no number, or none of these."""
    found = _ANSWER.fullmatch(text)
    choices = _decoder.decode(encoded)
    return choices[int(found[1]) - 1] if found and int(found[1]) <= len(choices) else None
