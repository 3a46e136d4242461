"""The action qr_code: what the picture says, read back from its pixels."""

import subprocess
from math import isqrt
from pathlib import Path
from typing import Any

import pytest
import segno

from tests.scenarios.actions.conftest import PRIVATE, Bench

PIXELS, BORDER = 10, 4


def modules_of(picture: Path) -> list[list[int]]:
    """The dark (1) and light (0) modules of a picture, without its quiet zone."""
    command = ["ffmpeg", "-v", "error", "-i", str(picture), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    pixels = subprocess.run(command, check=True, capture_output=True).stdout
    width = isqrt(len(pixels))
    middles = range(PIXELS * BORDER + PIXELS // 2, width - PIXELS * BORDER, PIXELS)
    return [[int(pixels[y * width + x] < 128) for x in middles] for y in middles]


async def drawn(bench: Bench, **fields: Any) -> tuple[str, list[list[int]]]:
    results = await bench.results({"type": "qr_code", **fields}, PRIVATE)
    return results["qr_text"], modules_of(Path(results["qr_file"]))


@pytest.mark.parametrize("text", ["https://example.org/?a=1&b=2", "Комната 12"])
async def test_a_text_is_drawn(bench: Bench, text: str) -> None:
    said, modules = await drawn(bench, text=text)
    assert said == text
    assert modules == [list(row) for row in segno.make(text, error="m", micro=False).matrix]


async def test_a_link_opens_this_bot_with_a_parameter(bench: Bench) -> None:
    said, modules = await drawn(bench, start="room_12")
    assert said == "https://t.me/sandbox4343_bot?start=room_12"
    assert modules == [list(row) for row in segno.make(said, error="m", micro=False).matrix]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"start": "a b"}, "start: 'a b' is not 1 to 64 letters"),
        ({"start": "x" * 65}, "is not 1 to 64 letters"),
        ({"text": "x" * 901}, "the text has 901 characters, more than 900"),
        ({"text": " "}, "there is no text to draw"),
    ],
)
async def test_what_cannot_be_drawn_is_refused(bench: Bench, fields: dict[str, str], error: str) -> None:
    assert error in await bench.error({"type": "qr_code", **fields}, PRIVATE)


async def test_a_link_to_the_bot_needs_telegram(bench: Bench) -> None:
    assert "works only in Telegram" in await bench.error(
        {"type": "qr_code", "start": "a"}, {**PRIVATE, "channel": "vk"}
    )
