"""The teacher's dialog (D-32) over the Bot API: select, write, confirm, send; each refusal has its own text."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from core.directory import Directory
from core.directory.preferences import Preferences
from core.model.people import Group, UserChange
from core.sessions import SignInLinks
from tests.scenarios.teacher.chat import STRANGER, STUDENT, TEACHER, School, english, labels
from tests.support.stack import TENANT
from tests.support.waiting import until


async def test_a_teacher_selects_groups_writes_and_sends(school: School) -> None:
    await school.answer("/select")
    assert labels(school.messages()[-1]) == [
        "• Groups •",
        "Supergroups",
        "ИВТ-101",
        "ИВТ-102",
        "Пусто",
        "Done",
        "Cancel",
    ]
    await school.notice("ИВТ-101")
    await school.notice("ИВТ-102")
    await until(lambda: {"✅ ИВТ-101", "✅ ИВТ-102"} <= set(labels(school.messages()[-1])))
    await school.notice("Done")
    await school.shows("People: 3")
    await school.answer("Завтра нет {{name}} пары")
    await school.notice("Now")
    confirmation = await school.shows("of these without a contact: 1")
    assert "\n{{name}} goes to everybody as it is written: nothing is put in its place.\n" in confirmation["text"]
    assert "By SMS: 2, 1 SMS each" in confirmation["text"]
    await school.notice("Send")
    await school.shows("Everybody who can be reached was reached")
    assert sorted(school.sms.addresses) == ["+79990000002", "+79990000003"]
    assert {one.text for one in school.sms.attempted} == {"Завтра нет {{name}} пары"}


async def test_an_overlapping_supergroup_is_selected_on_its_own_tab(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Supergroups")
    await until(lambda: "Весь поток" in labels(school.messages()[-1]))
    await school.notice("Весь поток")
    await school.shows("Selected: ИВТ-101, Весь поток")
    await school.notice("Done")
    await school.shows("People: 3")


async def test_a_toggle_takes_a_group_off_again(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("✅ ИВТ-101")
    await school.shows("Selected: –")
    await school.notice("Done")
    await school.shows(english("choose_nothing"))


async def test_nothing_selected_has_its_own_answer(school: School) -> None:
    await school.answer("/select")
    await school.notice("Done")
    await school.shows(english("choose_nothing"))


async def test_a_teacher_without_groups_has_its_own_answer(school: School) -> None:
    for group in (101, 102, 103):
        await school.directory.ownerships.disown(TENANT, 1, "group", group)
    assert await school.answer("/select") == english("select_nothing_owned")


async def test_groups_without_people_have_their_own_answer(school: School) -> None:
    await school.select("Пусто")
    await school.notice("Done")
    await school.shows(english("choose_nobody"))


async def test_a_student_may_not_write_to_groups(school: School) -> None:
    assert await school.answer("/select", STUDENT) == english("select_not_allowed")


async def test_an_administrator_may_write_to_every_group(school: School) -> None:
    await school.directory.users.update(TENANT, 2, UserChange(role="admin"))
    await school.answer("/select", STUDENT)
    assert "ИВТ-101" in labels(school.messages(STUDENT)[-1])


async def test_cancel_ends_the_dialog_at_every_step(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Cancel")
    await until(lambda: school.texts()[-1] == english("cancelled"))
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.notice("Cancel")
    await school.prepare("hello")
    await school.notice("Cancel")
    await until(lambda: school.texts()[-1] == english("cancelled"))
    answer = [english(name) for name in ("not_understood", "answer_by_reply", "help_teacher")]
    assert await school.answer("hello") == "\n".join(answer)
    assert school.sms.attempted == []


async def test_4097_characters_are_refused_and_4096_are_not(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Done")
    assert await school.answer("a" * 4097) == english("text_malformed")
    assert await school.answer("a" * 4096) == english("time_when")


async def test_a_time_is_typed_and_a_passed_or_unclear_one_refused(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.answer("hello")
    assert await school.answer("soon") == english("time_malformed")
    assert await school.answer("01.01.2020 9:00") == english("time_passed")
    later = datetime.now(UTC) + timedelta(days=300)
    assert f"{later:%d.%m.%Y} 09:00" in await school.answer(f"{later:%d.%m.%Y} 9:00")


async def test_the_button_for_tomorrow_stands_for_nine_o_clock(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.answer("hello")
    await school.notice("Tomorrow 9:00")
    assert "Send" in labels(await school.shows(" 09:00"))


async def test_a_time_that_the_clock_skips_is_named_before_the_confirmation(idle_school: School) -> None:
    school = replace(idle_school, timezone=ZoneInfo("Europe/Berlin"))
    async with school.running():
        await school.select("ИВТ-101")
        await school.notice("Done")
        await school.answer("hello")
        days = (datetime.now(UTC) + timedelta(days=n) for n in range(1, 366))
        skipped = next(one for one in days if one.month == 3 and one.weekday() == 6 and one.day > 24)
        shown = await school.answer(f"{skipped:%d.%m.%Y} 2:30")
    assert shown.startswith(english("time_skipped", skipped="02:30"))
    assert f"Time: {skipped:%d.%m.%Y} 03:00" in shown


async def test_a_stale_keyboard_is_refused(school: School) -> None:
    await school.answer("/select")
    old = school.messages()[-1]
    await school.answer("/select")
    assert await school.notice("ИВТ-101", message=old) == english("button_stale")


async def test_send_pressed_twice_sends_once(school: School) -> None:
    await school.prepare("hello")
    confirmation = school.last_with("Send")
    presses = [school.press("Send", message=confirmation) for _ in range(2)]
    await school.shows("Everybody who can be reached was reached")
    assert [await school.notice_of(one) for one in presses] == ["", english("button_stale")]
    assert len(school.sms.attempted) == 2


async def test_a_group_that_was_deleted_meanwhile_is_refused_at_done(school: School) -> None:
    await school.select("ИВТ-101", "ИВТ-102")
    await school.directory.groups.delete(TENANT, 102)
    await school.notice("Done")
    await school.shows(english("choose_gone"))


async def test_a_group_that_was_deleted_before_sending_is_named_and_nothing_is_sent(school: School) -> None:
    await school.prepare("hello", "ИВТ-101", "ИВТ-102")
    await school.directory.groups.delete(TENANT, 102)
    await school.notice("Send")
    await school.shows(english("order_group_not_found"))
    assert school.sms.attempted == []


async def test_ownership_lost_before_sending_is_refused(school: School) -> None:
    await school.prepare("hello")
    await school.directory.ownerships.disown(TENANT, 1, "group", 101)
    await school.notice("Send")
    await school.shows(english("order_not_owner"))
    assert school.sms.attempted == []


async def test_a_keyboard_of_many_groups_has_pages(school: School) -> None:
    for number in range(200, 220):
        await school.directory.groups.create(TENANT, Group(number, f"Группа {number}"))
        await school.directory.ownerships.own(TENANT, 1, "group", number)
    await school.answer("/select")
    await school.notice("Page 2 of 3 ›")
    shown = await school.shows_button("Page 3 of 3 ›")
    assert "‹ Page 1 of 3" in labels(shown)
    assert len(labels(shown)) == 2 + 8 + 2 + 2


async def test_a_person_links_the_chat_by_a_mailed_code(school: School) -> None:
    await school.directory.users.update(TENANT, 3, UserChange(email="vera@example.org", role="trainer"))
    await school.answer("/start", STRANGER)
    await school.answer("vera@example.org", STRANGER)
    await until(lambda: school.outbox.codes)
    assert "Вера" in await school.answer(school.outbox.codes[0], STRANGER)
    assert (await school.directory.users.find(TENANT, 3)).contacts["telegram-bot"] == [str(STRANGER)]


async def test_what_is_no_text_is_refused_as_text(school: School) -> None:
    await school.select("ИВТ-101")
    await school.notice("Done")
    before = len(school.messages())
    school.bot_api.server.people.share_contact(TEACHER)
    await until(lambda: len(school.messages()) > before)
    assert school.texts()[-1] == english("text_malformed")


async def test_the_bot_sends_a_link_to_the_page_of_the_person_that_writes(school: School) -> None:
    answer = await school.answer("/settings", STUDENT)
    (url,) = [word for word in answer.split() if "://" in word]
    page, _, token = url.partition("/p/")
    assert page == "https://ada.example"
    preferences = Preferences(school.stack.store, Directory(school.stack.store))
    assert (await preferences.open(token)).user.id == 2


@pytest.mark.parametrize(("writer", "person"), [(TEACHER, "1"), (STUDENT, "2")])
async def test_the_bot_sends_a_link_that_signs_its_reader_in_to_the_console(
    school: School, writer: int, person: str
) -> None:
    answer = await school.answer("/console", writer)
    (url,) = [word for word in answer.split() if "://" in word]
    page, _, link = url.partition("#/sign-in/")
    assert (page, "10 min" in answer) == ("https://ada.example/", True)
    proven = await SignInLinks(school.stack.store).use(link)
    assert (proven.tenant, proven.person) == (TENANT, person)
