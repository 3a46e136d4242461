"""The example bot is free of mistakes, and its form, its roles and its menu do what its README says."""

from typing import Any

import pytest

from examples import SCHOOL_BOT
from scenarios.check import check
from scenarios.check.dry_run import dry_run

TEACHER = 100_001


def texts(**event: Any) -> list[str]:
    """What the bot would send for an event of a student."""
    fields = {"kind": "text", "user_id": 5, "chat_id": 5, "chat_type": "private", "first_name": "Vera", **event}
    return [row.send.text for row in dry_run(check(SCHOOL_BOT).bot, fields).rows if row.send]


def test_the_check_finds_nothing() -> None:
    assert check(SCHOOL_BOT).problems == ()


def test_every_scenario_is_started_by_a_trigger_or_a_button() -> None:
    """The button Help jumps to its scenario by the bare name."""
    written = "".join(path.read_text(encoding="utf-8") for path in SCHOOL_BOT.rglob("*.yaml"))
    started = {name for name in check(SCHOOL_BOT).bot.scenarios if f": {name}\n" in written}
    assert check(SCHOOL_BOT).bot.scenarios.keys() - started == {"menu.help"}


@pytest.mark.parametrize(
    ("state", "written", "answer"),
    [
        ("club_name", "V", "A name has"),
        ("club_name", "Vera", "Step 2 of 3"),
        ("club_phone", "123", "A number looks like"),
        ("club_phone", "+79991112233", "Step 3 of 3"),
        ("club_choice", "Singing", "There are two clubs"),
        ("club_choice", "Chess", "Thank you"),
        ("club_phone", "/cancel", "Stopped"),
        ("", "hello", "I do not know “hello”"),
    ],
)
def test_each_step_of_the_form_accepts_the_right_answer_and_asks_again_for_a_wrong_one(
    state: str, written: str, answer: str
) -> None:
    assert texts(event_text=written, user_state=state)[0].startswith(answer)


def test_only_the_teacher_writes_to_the_group() -> None:
    assert texts(event_text="/write") == ["Only teachers write to the group."]
    assert texts(event_text="/write", user_id=TEACHER)[0].startswith("What shall I write")
    assert "No class" not in texts(event_text="No class", user_state="broadcast_text")
    assert texts(event_text="No class", user_state="broadcast_text", user_id=TEACHER)[0] == "No class"
