"""A bot of one's own and the dialog of teachers beside it, in one process: which of the two answers (W-44)."""

import pytest

from core.model.people import Group, User, UserChange
from scenarios.bot.new_bot import TEACHER
from scenarios.execution.active_bot import ActiveBot
from scenarios.inspection.bots import BotReader
from tests.sandbox.bot_api_clients import BotApi, bot_api
from tests.scenarios.execution.conftest import PERSON, Installation
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]

pytestmark = pytest.mark.parametrize("shards", [1])

EXACT = '"/help": s.help, "/own": s.help, order: s.order'
BOT = """
help: {actions: [{type: send, text: own help}]}
any: {actions: [{type: send, text: "own: {event_text}"}]}
order:
  actions:
    - {type: ask, text: "how many?"}
    - {type: send, text: "own answer: {answer}", chain: completed}
"""
MENU = "Whom do you write to?\nSelected: –"
CANCELLED = "Cancelled. Nothing was sent. /select begins again."


@pytest.fixture
async def school(installation: Installation) -> Installation:
    """Anna, a trainer, owns a group with Boris; her chat is linked. The own bot has `/help`, `order` and `*`."""
    directory = installation.directory
    await directory.users.create(TENANT, User(1, "Анна", "anna@example.org", "trainer", "en", {"echo": [PERSON]}))
    await directory.users.create(TENANT, User(2, "Борис", None, "student", "ru", {"echo": ["p2"]}))
    await directory.groups.create(TENANT, Group("ИВТ-101", "ИВТ-101"), [2])
    await directory.ownerships.own(TENANT, 1, "group", "ИВТ-101")
    installation.beside = ActiveBot(TEACHER)
    write(installation)
    return installation


def write(school: Installation, triggers: str = f'text: {{exact: {{{EXACT}}}, "*": s.any}}') -> None:
    school.write("triggers.yaml", triggers).write("scenarios/s.yaml", BOT)


async def reply(school: Installation, written: str, user: str = PERSON) -> str:
    """Write; return the next message to this person."""
    before = len(texts(school, user))
    await school.put(written, user_id=user, chat_id=user)
    await until(lambda: len(texts(school, user)) > before)
    return texts(school, user)[before]


async def press(school: Installation, label: str) -> str:
    """Press a button of the last message that has it; return the next message to Anna."""
    before = len(texts(school))
    contents = [one.content for one in reversed(school.courier.attempted) if one.address == PERSON and one.content]
    data = next(one.data for content in contents for row in content.inline for one in row if one.text == label)
    await school.put(event_text=None, callback_data=data, message_id=100)
    await until(lambda: len(texts(school)) > before)
    return texts(school)[before]


def texts(school: Installation, user: str = PERSON) -> list[str]:
    return [one.text for one in school.courier.attempted if one.address == user]


async def test_each_of_the_two_bots_answers_what_is_its_own(school: Installation) -> None:
    await school.start()
    assert await reply(school, "/help") == "own help", "both have it"
    assert await reply(school, "no lecture today") == "own: no lecture today"
    assert await reply(school, "ИВТ-101 no lecture") == "own: ИВТ-101 no lecture", "`*` of the dialog does not count"
    assert await reply(school, "/select") == MENU
    assert (await reply(school, "ИВТ-")).startswith(MENU), (
        "a text searches the list of the dialog, though the own bot has `*`"
    )
    assert "Selected: ИВТ-101" in await press(school, "ИВТ-101")
    assert (await press(school, "Done")).endswith("Write the text.")
    assert (await reply(school, "order")).startswith("When shall it be sent?"), "the text, not a trigger of the own bot"
    assert await reply(school, "/help") == "own help", "the question of the dialog stays open"
    assert await reply(school, "/own") == "own help", "another command ends the dialog"
    assert await reply(school, "14:30") == "own: 14:30"
    assert await reply(school, "order") == "how many?"
    assert await reply(school, "anna@example.org") == "own answer: anna@example.org", "not linked by the dialog"
    assert await reply(school, "order") == "how many?"
    assert await reply(school, "/select") == MENU, "a command of the dialog ends a question of the own bot"
    assert await reply(school, "/cancel") == CANCELLED
    assert texts(school, "p2") == []


async def test_a_text_like_a_code_or_an_address_is_for_the_dialog_only_while_a_person_links_its_chat(
    school: Installation,
) -> None:
    """Six letters are an ordinary word; the dialog took them for a mailed code."""
    await school.start()
    for written in ("Monday", "stranger@example.org"):
        assert await reply(school, written, "p9") == f"own: {written}"
    asked = await reply(school, "/link", "p9")
    for written in ("Monday", "stranger@example.org"):
        assert not (await reply(school, written, "p9")).startswith("own")
    assert "e-mail" in asked or "почт" in asked
    assert await reply(school, "Monday") == "own: Monday", "she is linked"


async def test_a_dry_run_and_the_graph_are_those_of_the_bot_that_answers(school: Installation) -> None:
    await school.start()
    bots = BotReader(school.stack.store)
    event = {"id": "1", "channel": "echo", "user_id": PERSON, "chat_id": PERSON}
    for written, scenario in (("/select", "teacher_order.select"), ("/help", "s.help"), ("x", "s.any")):
        found = await bots.dry_run(TENANT, {**event, "event_text": written}, (), ())
        assert list(found.started) == [scenario]
        assert await bots.graph(TENANT, scenario, found.version) == await bots.graph(TENANT, scenario)


async def test_without_a_star_of_its_own_free_text_is_answered_by_neither(school: Installation) -> None:
    write(school, f"text: {{exact: {{{EXACT}}}}}")
    await school.start()
    run = await school.put("no lecture today")
    assert await reply(school, "/select") == MENU
    assert texts(school) == [MENU]
    assert not await school.exists(run)


async def test_a_reload_of_the_own_bot_leaves_what_waits_and_switches_the_dialog_off_and_on(
    school: Installation,
) -> None:
    await school.start()
    bots = BotReader(school.stack.store)
    assert (await bots.show(TENANT)).commands.by_bot == ("/help",)
    assert await reply(school, "/select") == MENU
    await press(school, "ИВТ-101")
    school.write("scenarios/s.yaml", BOT.replace("own: ", "new: "))
    await school.active.reload_if_changed()
    assert (await press(school, "Done")).endswith("Write the text.")
    school.write("settings.yaml", "teacher: {enabled: false}\n")
    await school.active.reload_if_changed()
    assert (await reply(school, "no lecture")).startswith("When shall it be sent?"), "what has begun goes on"
    assert await reply(school, "/select") == "new: /select"
    await until(lambda: by_dialog(bots, ()))
    assert await reply(school, "order", "p3") == "how many?"
    school.write("settings.yaml", "teacher: {enabled: true}\n")
    school.write("triggers.yaml", 'text: {"*": s.any}').write("scenarios/s.yaml", BOT[: BOT.index("order:")])
    await school.active.reload_if_changed()
    assert await reply(school, "3", "p3") == "own answer: 3", "of a version that asked, though no action asks any more"
    assert await reply(school, "/select") == MENU
    await until(
        lambda: by_dialog(bots, ("/start", "/link", "/help", "/unlink", "/settings", "/select", "/cancel", "/console"))
    )


async def by_dialog(bots: BotReader, wanted: tuple[str, ...]) -> bool:
    return (await bots.show(TENANT)).commands.by_dialog == wanted


async def test_a_person_whom_the_directory_blocks_is_not_answered_by_the_dialog_and_sends_nothing(
    school: Installation,
) -> None:
    await school.start()
    begun = await school.put("/select")
    await until(lambda: texts(school) == [MENU])
    await press(school, "ИВТ-101")
    await press(school, "Done")
    await school.directory.users.update(TENANT, 1, UserChange(blocked=True))
    assert (await reply(school, "no lecture")).startswith("When shall it be sent?")
    await school.put("now")
    refused = (await school.over(begun)).actions
    assert [one.results["code"] for one in refused if one.type == "order"] == ["PERSON_BLOCKED"]
    run = await school.put("/select")
    assert await reply(school, "no lecture") == "own: no lecture", "the own bot names nobody of the directory"
    assert not await school.exists(run)
    assert texts(school, "p2") == []


async def test_the_menu_of_telegram_has_the_commands_of_both(school: Installation, bot_api: BotApi) -> None:
    school.options = {"telegram": bot_api.named_calls}
    await school.start()
    private = types.BotCommandScopeAllPrivateChats()

    async def is_shown() -> bool:
        return [one.command for one in await bot_api.bot.get_my_commands(private)] == ["select", "console"]

    await until(is_shown)  # the own bot answers `/help` itself
