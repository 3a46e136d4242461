"""The list of addressees, and an order, as a rehearsal plays them; the list alone (C-115)."""

from pathlib import Path

import pytest

from core.model.content import Button, Content
from core.orders.choices import PERSON, Choice, addressee
from couriers.channel import channels
from scenarios.bot.button_data import LONGEST_DATA
from scenarios.check import check
from scenarios.sending.choosing import PAGE, AddresseeSelection, ChoiceList, choice_press, titles_of
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder

GROUPS = [Choice("group", number, f"ИВТ-{number}") for number in range(1, 20)]
LIST = ChoiceList("0" * 16, ("group", "supergroup", PERSON), "en")

BOT = """
write:
  actions:
    - {type: choose_addressees, text: "<b>Whom?</b>", words: {done: Ready}}
    - {type: ask, text: "To {titles}. The text?", chain: completed}
    - {type: order, text: "{answer}", deliver_at: tomorrow 9:00, preview: true, chain: completed}
    - {type: send, text: "{people} at {deliver_at}, {sms_parts} SMS", chain: completed}
    - {type: order, text: "{answer}", deliver_at: tomorrow 9:00, chain: completed}
    - {type: send, text: "Ordered {delivery_id}", chain: completed}
    - {type: send, text: "Not ordered: {code|fallback:stopped}", chain: [failed, drop]}
in_any:
  actions: [{type: choose_addressees, text: Whom?, language: "{event_text|regex:in (.+)}"}]
late:
  actions:
    - {type: order, to: {group: A}, text: x, deliver_at: "{event_text|regex:at (.+)}"}
    - {type: send, text: "{error}", chain: failed}
help: {actions: [{type: send, text: Help}]}
"""
TESTS = """
a group is selected and the message ordered:
  at: 2026-12-01 10:00
  steps:
    - user: /write
    - bot: {text: "Whom?\\nВыбрано: –", buttons: ["• Группы •", Супергруппы, A-1, A-2, Ready, Отмена]}
    - press: Ready
    - bot: {starts_with: Ничего не выбрано.}
    - press: A-2
    - bot: {text: "Whom?\\nВыбрано: A-2", buttons: ["• Группы •", Супергруппы, A-1, ✅ A-2, Ready, Отмена]}
    - user: "2"
    - bot:
        text: "Whom?\\nВыбрано: A-2\\nПоиск: 2"
        buttons: ["• Группы •", Супергруппы, ✅ A-2, Показать все, Ready, Отмена]
    - user: "3"
    - bot: {text: "Whom?\\nВыбрано: A-2\\nПоиск: 3 (ничего не найдено)"}
    - press: Показать все
    - bot: {text: "Whom?\\nВыбрано: A-2", buttons: ["• Группы •", Супергруппы, A-1, ✅ A-2, Ready, Отмена]}
    - press: Ready
    - bot: To A-2. The text?
    - user: No <classes>
    - bot: ["1 at 02.12.2026 09:00, 1 SMS", {starts_with: "Ordered 0.7."}]
    - wait: 1d
    - bot: {text: "No <classes>", to: ["group:A-2"]}
its language may come from a placeholder:
  steps:
    - user: in en-GB
    - bot: {contains: Selected}
a language that Ada does not speak is Russian:
  steps:
    - user: in fr
    - bot: {contains: Выбрано}
it ends when the person cancels:
  steps:
    - user: /write
    - bot: {contains: "Whom?"}
    - press: Отмена
    - bot: "Not ordered: CANCELLED"
a command begins something else:
  steps:
    - user: /write
    - bot: {contains: "Whom?"}
    - user: /help
    - bot: [Help, "Not ordered: stopped"]
a time in words is refused:
  at: 2026-12-01 10:00
  steps:
    - user: at 25.11.2026 14:30
    - bot: время '25.11.2026 14:30' уже прошло
    - user: at noon
    - bot: {contains: не время}
    - user: at 25.11.2029 14:30
    - bot: {contains: больше года}
"""


async def test_a_rehearsal_plays_the_list_and_the_order(tmp_path: Path) -> None:
    folder = BotFolder(tmp_path).write("scenarios/s.yaml", BOT).write("tests/t.yaml", TESTS)
    folder.write(
        "triggers.yaml", "text: {exact: {/write: s.write, /help: s.help}, starts_with: {at: s.late, in: s.in_any}}"
    )
    checked = check(tmp_path)
    verdicts, problems = await run_tests(tmp_path, checked.bot)
    assert [problem.message for problem in checked.problems] == []
    assert ([(one.name, one.place.line, one.problem) for one in verdicts if one.problem], problems) == ([], [])


def test_buttons_lead_back_to_what_they_say_and_fit_into_a_press() -> None:
    selection = AddresseeSelection(page=1, chosen=(GROUPS[0],))
    rows = LIST.rows(selection, GROUPS)
    assert len(rows) == 1 + PAGE + 1 + 1
    for button in (one for row in rows for one in row):
        press = choice_press(button["data"])
        assert press is not None
        assert len(button["data"].encode()) <= LONGEST_DATA
        if press.short:
            after = selection.after(press, GROUPS)
            assert after is not None
            assert after.after(press, GROUPS) == after, "twice is once"
            assert [one.title for one in after.chosen] == ["ИВТ-1", button["text"]]
    assert [one["text"] for one in rows[-2]] == ["‹ Page 1 of 3", "Page 3 of 3 ›"], "as SMS shows them, in words"


def test_the_toggle_of_what_is_selected_takes_it_off() -> None:
    selection = AddresseeSelection(chosen=(GROUPS[0], GROUPS[1]))
    button = LIST.rows(selection, GROUPS)[1][0]
    press = choice_press(button["data"])
    assert press is not None
    after = selection.after(press, GROUPS)
    assert after is not None
    assert (button["text"], after.chosen) == ("✅ ИВТ-1", (GROUPS[1],))


def test_a_page_behind_the_last_one_is_the_last_and_a_choice_that_is_gone_is_refused() -> None:
    assert [one["text"] for one in LIST.rows(AddresseeSelection(page=99), GROUPS)[-2]] == ["‹ Page 2 of 3"]
    press = choice_press(LIST.rows(AddresseeSelection(), GROUPS)[1][0]["data"])
    assert press is not None
    assert AddresseeSelection().after(press, GROUPS[1:]) is None


@pytest.mark.parametrize("data", ["", "choose:x", f"choose:{'0' * 16}:on:g:0:zz", f"choose:{'0' * 16}:on:x:0", ":menu"])
def test_other_buttons_are_no_press_of_a_list(data: str) -> None:
    assert choice_press(data) is None


@pytest.mark.parametrize(
    ("query", "found"),
    [("", 19), ("ивт-1", 11), ("ИВТ-19", 1), ("1", 11), ("19", 1), ("вт", 0), (" - ", 19), ("ивт-1 ивт-2", 0)],
)
def test_a_search_compares_the_beginnings_of_words(query: str, found: int) -> None:
    assert len(AddresseeSelection().searching(query).found(GROUPS)) == found


@pytest.mark.parametrize("kinds", [("group",), ("group", "supergroup"), ("group", "supergroup", PERSON)])
@pytest.mark.parametrize("query", ["", "ивт"])
def test_each_page_fits_into_a_keyboard_of_vk(kinds: tuple[str, ...], query: str) -> None:
    listed = ChoiceList("0" * 16, kinds, "ru", keyboard=channels()["vk"].keyboard)
    assert listed.keyboard
    shown = []
    for page in range(len(GROUPS)):
        rows = listed.rows(AddresseeSelection(page=page, query=query), GROUPS)
        buttons = [[Button(one["text"], one["data"]) for one in row] for row in rows]
        assert listed.keyboard.fits(Content(inline=buttons))
        shown += [one["text"] for row in rows for one in row if one["text"].startswith("ИВТ")]
    assert set(shown) == {one.title for one in GROUPS}


def test_how_to_search_is_said_if_there_is_more_than_a_page() -> None:
    hint = "To search, write a part of the title."
    assert hint in LIST.state(AddresseeSelection(), GROUPS)
    assert hint not in LIST.state(AddresseeSelection(), GROUPS[:PAGE])
    assert hint not in LIST.state(AddresseeSelection(query="ивт"), GROUPS)


def test_a_reference_leads_to_its_addressee() -> None:
    given = [addressee(Choice(kind, "a:b=c", "x").ref) for kind in ("group", "supergroup", PERSON)]
    assert [(one.group, one.supergroup, one.id)[n] for n, one in enumerate(given)] == ["a:b=c"] * 3


def test_titles_that_a_message_has_no_room_for_are_not_cut_silently() -> None:
    assert titles_of(GROUPS[:2]) == "ИВТ-1, ИВТ-2"
    long = titles_of([Choice("group", number, "x" * 300) for number in range(4)])
    assert (len(long), long[-2:]) == (1000, "x…")
