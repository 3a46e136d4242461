"""What the dialog says, word for word, as files: `» ` is what a person writes, `» [Label]` a press, `« ` the answer.

A line of labels in brackets stands under a message with buttons. A bot that takes the place of the dialog has to say
the same.
"""

import re
from pathlib import Path

import pytest

from tests.scenarios.teacher.chat import STRANGER, STUDENT, TEACHER, School, labels
from tests.support.waiting import until

FOLDER = Path(__file__).parent / "transcripts"
PEOPLE = {"teacher": TEACHER, "student": STUDENT, "stranger": STRANGER}


def steps(transcript: str) -> list[tuple[str, str]]:
    """What the person does, with what the bot shows then."""
    found = re.split(r"^» (.*)\n", transcript, flags=re.MULTILINE)[1:]
    return [(act, shown.strip("\n")) for act, shown in zip(found[::2], found[1::2], strict=True)]


def shown_in(school: School, user: int, notice: str) -> str:
    """The last message, its buttons, and what is shown over the chat."""
    messages = school.messages(user)
    lines = [f"« {messages[-1]['text']}"] if messages else []
    buttons = " ".join(f"[{label}]" for label in labels(messages[-1])) if messages else ""
    return "\n".join(filter(None, (*lines, buttons, f"! {notice}" if notice else "")))


async def act(school: School, what: str, user: int) -> str:
    """Write or press; return what is shown over the chat."""
    if what.startswith("["):
        return await school.notice(what.strip("[]"), user)
    code = school.outbox.codes[-1] if "CODE" in what else ""
    await school.answer(what.replace("CODE", code), user)
    return ""


@pytest.mark.parametrize("name", sorted(PEOPLE))
async def test_the_dialog_says_what_the_transcript_has(school: School, name: str) -> None:
    expected = steps((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
    assert expected
    user, played = PEOPLE[name], []
    for what, shown in expected:
        notice = await act(school, what, user)
        try:
            await until(lambda: shown_in(school, user, notice) == shown, within=20)  # noqa: B023 - awaited at once
        except AssertionError:
            pass
        played.append((what, shown_in(school, user, notice)))
    assert played == expected
