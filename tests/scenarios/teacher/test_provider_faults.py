"""While Telegram refuses or does not answer, nothing is lost or sent twice, and the dialog goes on where it stands."""

import time

import pytest

from sandbox.events import Fault, Rule
from tests.scenarios.teacher.chat import School, english
from tests.support.moments import AHEAD
from tests.support.waiting import until


def refuse(school: School, fault: str, method: str, value: int | None = None, times: int | None = None) -> None:
    """Let calls of a method fail, by default all of them."""
    school.bot_api.state.add_rule(Rule("telegram-bot", Fault(fault, value), method=method, times=times))


def calls(school: School, method: str) -> int:
    """How many calls reached a method, also those that failed."""
    return school.bot_api.state.counter("telegram-bot", method)


async def called(school: School, method: str, times: int) -> None:
    await until(lambda: calls(school, method) >= times, within=60)


async def at_the_text(school: School) -> None:
    """Go on until the bot waits for the text."""
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.shows("Write the text.")


async def test_a_prompt_is_sent_however_often_telegram_asks_to_wait(
    school: School, caplog: pytest.LogCaptureFixture
) -> None:
    await at_the_text(school)
    refuse(school, "flood_wait", "sendMessage", 1)
    before = calls(school, "sendMessage")
    school.write("No class")
    school.write(AHEAD)
    await called(school, "sendMessage", before + 2)
    school.bot_api.state.clear_rules()
    await school.shows(english("time_when"), within=45)
    shown = await school.shows(f"Time: {AHEAD}")
    assert "No class" in shown["text"]
    assert school.texts().count(english("time_when")) == 1
    assert "Traceback" not in caplog.text


async def test_a_prompt_that_may_be_lost_ends_the_dialog_and_shifts_nothing(school: School) -> None:
    await at_the_text(school)
    refuse(school, "server_error", "sendMessage", times=1)
    before = calls(school, "sendMessage")
    school.write("No class")
    await called(school, "sendMessage", before + 1)
    assert (await school.answer(AHEAD)).startswith(english("not_understood"))
    assert school.sms.attempted == []
    await school.send("No class")
    await school.shows(english("status_all_reached"))


@pytest.mark.parametrize(("fault", "value"), [("flood_wait", 1), ("server_error", None), ("disconnect_after", None)])
async def test_a_press_that_cannot_be_answered_does_not_repeat_the_message(
    school: School, fault: str, value: int | None
) -> None:
    await school.send("hello")
    await school.shows(english("status_all_reached"))
    await school.shows_button(english("button_missed"))
    refuse(school, fault, "answerCallbackQuery", value, times=1)
    school.press(english("button_missed"))
    await school.shows("Not reached: 1")
    await school.answer("/help")  # which waits until the press is processed
    assert len([one for one in school.texts() if one.startswith("Not reached: 1")]) == 1


async def test_a_press_that_has_only_a_notice_is_answered_later(school: School) -> None:
    await school.select("ИВТ-101")
    old = school.messages()[-1]
    await school.answer("/select")
    refuse(school, "server_error", "answerCallbackQuery", times=1)
    assert await school.notice("Done", message=old) == english("button_stale")


async def test_the_status_waits_as_long_as_telegram_asks(school: School, caplog: pytest.LogCaptureFixture) -> None:
    await school.prepare("hello")
    refuse(school, "flood_wait", "editMessageText", 1, times=1)
    before = calls(school, "editMessageText")
    school.press("Send")
    await called(school, "editMessageText", before + 1)
    refused_at = time.monotonic()
    await called(school, "editMessageText", before + 2)
    assert time.monotonic() - refused_at > 0.9
    await school.shows(english("status_all_reached"))
    assert "Traceback" not in caplog.text


async def test_the_status_is_shown_after_a_fault_of_the_network(
    school: School, caplog: pytest.LogCaptureFixture
) -> None:
    await school.prepare("hello")
    refuse(school, "disconnect_before", "editMessageText", times=1)
    school.press("Send")
    await school.shows(english("status_all_reached"))
    assert "Traceback" not in caplog.text
