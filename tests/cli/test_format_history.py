"""How the command line shows histories."""

import pytest

from cli.client.format_history import format_content, format_outcome, recipient_lines


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


def test_recipients_are_a_table_without_the_channels_in_which_nobody_has_a_contact() -> None:
    no_contact = {"status": "no_contact"}
    anna = {"telegram": {"status": "sent"}, "vk": no_contact, "sms": {"status": "failed", "reason": "blocked"}}
    recipients = [
        {"id": 1, "name": "Анна", "outcomes": anna},
        {"id": 2, "outcomes": {"telegram": {"status": "read"}, "vk": no_contact, "sms": no_contact}},
        {"id": 3, "outcomes": {"telegram": no_contact, "vk": no_contact, "sms": no_contact}},
    ]
    assert list(recipient_lines({"recipients": recipients, "next": "cursor"})) == [
        "            telegram    sms",
        "  Анна (1)  sent        failed (blocked)",
        "  2         read        –",
        "  3         no contact",
        "  …",
    ]
    assert list(recipient_lines({"recipients": recipients[2:]})) == ["", "  3  no contact"]
