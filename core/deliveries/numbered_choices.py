"""Numbered choices: what a channel without buttons shows in their place, and those of a tenant's last message to an
address, so that its number answers it.

Which day?
1. Today                        Button("Today", data="today")
2. Tomorrow                     Button("Tomorrow", data="tomorrow")
Site: https://example.org       Button("Site", url="https://example.org")

Written by `couriers.sending` before the message is sent, read by `core.updates` when a person writes a number. A later
message without choices removes them: a number then answers that message.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

import msgspec

from core.model.contacts.addresses import canonical
from core.model.content import Button, Content
from core.redis.keys import KEYS
from core.redis.store import Store

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


LIFETIME = timedelta(days=1)


class Choices:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, tenant: str, channel: str, addresses: Iterable[str], choices: Sequence[Button]) -> None:
        """Replace the choices of these addresses; without choices, remove them."""
        keys = [self._key(tenant, channel, address) for address in addresses]
        if not choices:
            await asyncio.gather(*(self._store.command("DEL", key) for key in keys))
            return
        encoded, seconds = encode_choices(choices), LIFETIME // timedelta(seconds=1)
        await asyncio.gather(*(self._store.command("SET", key, encoded, "EX", seconds) for key in keys))

    async def button_of(self, tenant: str, channel: str, address: str, text: str) -> Button | None:
        """Return the button that a text answers; None if it is no number or there is no such choice."""
        if not may_be_answer(text):
            return None
        encoded = await self._store.command("GET", self._key(tenant, channel, address))
        return chosen(encoded, text) if encoded else None

    def _key(self, tenant: str, channel: str, address: str) -> str:
        """Return the Redis key. An address may be written in several ways."""
        known = canonical(channel, address)
        return KEYS["choices"].at(self._store.shard_of_person(tenant, channel, known), tenant, channel, known)
