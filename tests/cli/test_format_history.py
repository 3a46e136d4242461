"""How the command line shows histories."""

import pytest

from cli.client.format_history import format_content, format_outcome


@pytest.mark.row("C-91")
def test_an_outcome_shows_what_the_channel_could_not_show() -> None:
    outcome = {"status": "sent", "reason": None, "not_shown": ["inline", "photo menu.png"]}
    assert format_outcome("sms", outcome) == "sms sent without inline, photo menu.png"
    assert format_outcome("sms", {"status": "failed", "reason": "blocked"}) == "sms failed (blocked)"


def test_content_is_shown_in_one_line() -> None:
    content = {
        "parse_mode": "HTML",
        "inline": [[{"text": "a", "data": "a"}], [{"text": "b", "url": "https://example.org"}]],
        "attachments": [{"type": "photo", "name": "menu.png"}],
        "reply_to": "12",
    }
    assert format_content(content) == "HTML, 2 buttons, photo, reply to 12"
    assert format_content({"reply": [["a"]]}) == "1 button"
    assert format_content({"reply": []}) == "no keyboard"
