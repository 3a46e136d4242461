"""Draws a QR code: of a text, or of a link that starts the bot with a parameter (C-102)."""

import asyncio
import re
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

from core.errors import Invalid
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.schema.conversion import invalid
from scenarios.telegram import call
from scenarios.words import sentence

_LONGEST = 900
"""Characters: a code of more cannot be read by a telephone from a printed page."""

_START = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Source: core.telegram.org/bots/features#deep-linking."""

_KEPT = timedelta(days=3650)
"""The code of a text never changes."""

_PIXELS, _BORDER = 10, 4
"""Of a module of the code, and of its quiet zone in modules (ISO/IEC 18004)."""


class QrCodeAttributes(Attributes, frozen=True):
    text: Annotated[Text, Own("What the code says, for example an address: up to 900 characters.")] = ""
    start: Annotated[
        Text,
        Own(
            "In Telegram, in place of `text`: the code opens this bot with `/start` and this parameter, of up to 64"
            " letters, digits, `_` and `-`."
        ),
    ] = ""


async def execute(context: Context, written: QrCodeAttributes) -> Ending:
    """Draw the code into a file that may be sent. Raises Invalid; Conflict NOT_TELEGRAM, NO_BOT; TelegramRefused."""
    text = await _text(context, written.text, written.start)

    async def draw(file: Path) -> None:
        await asyncio.to_thread(_draw, text, file)

    name = f"{blake2b(text.encode(), digest_size=16).hexdigest()}.png"
    file = await context.services.pictures.file(name, _KEPT, draw)
    return completed({"qr_file": str(file), "qr_text": text})


async def _text(context: Context, text: str, start: str) -> str:
    if start:
        if not _START.fullmatch(start):
            raise invalid("start", start, sentence("start_parameter"))
        bot = await call(context, "getMe")
        return f"https://t.me/{bot['username']}?start={start}"
    if not text:
        raise Invalid("TEXT_EMPTY", sentence("no_text_draw"), "text")
    if len(text) > _LONGEST:
        raise Invalid("TEXT_TOO_LONG", sentence("text_has_characters_more", length=len(text), most=_LONGEST), "text")
    return text


def _draw(text: str, file: Path) -> None:
    import segno  # most bots draw none

    segno.make(text, error="m", micro=False).save(str(file), kind="png", scale=_PIXELS, border=_BORDER)


ACTION = ActionType(
    name="qr_code",
    help="Draws a QR code as a picture for the `attachment` of the next `send`.",
    attributes=QrCodeAttributes,
    one_of=("text", "start"),
    returns={
        "qr_file": "the picture, for the `attachment` of the next `send`",
        "qr_text": "what the code says: with `start` the address of the bot",
    },
    outside=lambda written: bool(written.start),
    execute=execute,
    samples={"qr_file": "qr.png"},
)
