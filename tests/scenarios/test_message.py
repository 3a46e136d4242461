"""What a `send` sends."""

from typing import Any

import pytest

from scenarios.sending.message import MessageAttributes, message


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({"text": "x" * 5000}, "x" * 4093 + "..."),
        ({"text": f"<b>{'x' * 4096}</b>"}, f"<b>{'x' * 4096}</b>"),
        ({"text": f"<b>{'x' * 5000}</b>"}, f"<b>{'x' * 4093}...</b>"),
        ({"text": f"<b>{'x' * 2000}</b>", "attachment": "a.png"}, f"<b>{'x' * 1021}...</b>"),
        ({"text": f"*{'x' * 5000}*", "parse_mode": "MarkdownV2"}, f"*{'x' * 4093}\\.\\.\\.*"),
    ],
)
def test_too_long_a_text_is_cut_within_its_marks(seen: dict[str, Any], text: str) -> None:
    cut = message(MessageAttributes(**seen))
    assert cut is not None
    assert cut.text == text
