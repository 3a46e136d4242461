"""An author of a bot: its problems and graphs, a dry run, runs step by step."""

from pathlib import Path

import pytest

from core.processes.register import BotFault, BotFaults
from core.queue import NewTask, Queue
from core.redis.store import Store
from scenarios.bot.data import Data
from scenarios.bot.new_bot import TEACHER
from scenarios.engine import completed, failed
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.runs import Runs, run_id
from scenarios.execution.versions import LastGood, Versions
from scenarios.stores.forms import FormAnswer, Forms
from tests.delivery.console.conftest import Person

TENANT = "default"
CLUB = """
main:
  actions:
    - {type: send, text: "Welcome, {first_name}"}
    - {type: user, user_state: member, chain: completed}
    - {type: send, text: You are a member, chain: completed}
    - {type: send, text: Something went wrong, chain: failed}
    - {type: scenario, value: club.rules, chain: any}
rules:
  actions: [{type: send, text: Be kind}]
"""
BOXES = "document.querySelectorAll('.box').length"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bot's files."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "club.yaml").write_text(CLUB)
    (tmp_path / "triggers.yaml").write_text('text: {exact: {/start: club.main}, "*": club.rules}')
    return tmp_path


@pytest.fixture
async def bot(store: Store, folder: Path) -> ActiveBot:
    """The bot, as a process of the scenarios has loaded it."""
    loaded = ActiveBot(folder)
    await LastGood(store, Versions(store), TENANT, loaded).store()
    return loaded


async def test_the_page_says_which_bot_answers_each_command_of_teachers(
    person: Person, store: Store, bot: ActiveBot
) -> None:
    await person.visit("scenarios", language="ru")
    await person.sees("Отвечает диалог преподавателей\n–\n")
    await LastGood(store, Versions(store), TENANT, bot, ActiveBot(TEACHER)).store()
    commands = "/link, /help, /unlink, /settings, /select, /cancel, /console"
    await person.visit("scenarios")
    await person.sees(f"Answered by the dialog of teachers\n{commands}\nBy this bot instead\n/start")
    await person.visit("scenarios", language="ru", width=390)
    await person.sees(f"Отвечает диалог преподавателей\n{commands}\nВместо него сам бот\n/start")


async def test_an_author_sees_the_bot_in_force_its_mistakes_and_a_scenario_as_a_graph(
    person: Person, store: Store, bot: ActiveBot, axe_source: str
) -> None:
    (bot.folder / "scenarios" / "club.yaml").write_text(CLUB.replace("user_state", "user_stat"))
    broken = ActiveBot(bot.folder)
    broken.use(bot.version, bot.bot)
    await LastGood(store, Versions(store), TENANT, broken).store()
    await person.visit("scenarios")
    await person.sees("The last good version stays in force")
    await person.sees("scenarios/club.yaml:5:")
    await person.keeps_picture("bot")
    await person.has_no_barrier_on_a_phone(axe_source, "bot")
    await person.visit("scenarios")
    await person.presses("club.main")
    await person.sees("Choose a step")
    assert await person.browser.run(BOXES) == 6
    await person.browser.run("document.querySelectorAll('.box')[1].focus()")
    await person.browser.press("Enter")
    await person.sees("user_state: member")
    await person.keeps_picture("scenario")
    await person.has_no_barrier_on_a_phone(axe_source, "scenario")


@pytest.mark.usefixtures("bot")
async def test_an_author_tries_an_event_and_then_the_other_path(person: Person, axe_source: str) -> None:
    await person.visit("dry_run")
    await person.writes("What the person writes", "/start")
    await person.presses("Try it")
    await person.sees("Starts club.main. triggers.yaml:1")
    await person.sees("You are a member")
    await person.sees("action 3 ended as completed; the chain is failed")
    await person.browser.run("document.querySelectorAll('.steps select')[1].id = 'second'")
    script = "(one) => { one.value = 'failed'; one.dispatchEvent(new Event('change')) }"
    await person.browser.run(f"({script})(document.getElementById('second'))")
    await person.sees("action 2 ended as failed; the chain is completed")
    assert await person.browser.run("document.querySelectorAll('.box.bad').length") == 1
    await person.keeps_picture("dry-run")
    assert await person.barriers(axe_source) == []
    assert (await person.running.call("GET", "/v1/runs?person=telegram:1"))["runs"] == []


MISTAKES = """
main:
  actions:
    - {type: sned}
    - {type: send, txet: x, inline: [[{Rules: club.rulse}]]}
    - {type: send, text: "{frist_name} <b>", attachment: [{type: photo}], chain: [done]}
    - {type: ask, rules: [{rule: at_least}, {rule: regex, value: "("}]}
    - {type: validator, rules: {phone: 7}}
    - {type: set, variables: {person.age: 1}}
rules:
  actions: [{type: send, text: "{event_text|lowre} {nobody}"}, {type: send, text: "{nobody|fallback:}"}]
"""


async def test_a_russian_author_reads_what_is_wrong_in_russian(person: Person, store: Store, bot: ActiveBot) -> None:
    (bot.folder / "scenarios" / "club.yaml").write_text(MISTAKES)
    broken = ActiveBot(bot.folder)
    await LastGood(store, Versions(store), TENANT, broken).store()
    assert len(broken.problems) > 10
    await person.visit("scenarios", language="ru")
    await person.sees("нет действия 'sned'; возможно, send?")
    for problem in broken.problems:
        await person.sees_no(problem.message)
    await person.keeps_picture("bot-with-mistakes-ru")
    await person.visit("dry_run", language="ru")
    await person.writes("Что человек пишет", "Hello")
    await person.presses("Попробовать")
    await person.sees("club.rules: text: {event_text|lowre}: нет модификатора 'lowre'")
    await person.sees("поэтому он выполняется сразу; отправлять нечего: нет ни текста, ни вложения")
    await person.sees_no("there is no")
    await person.keeps_picture("dry-run-ru")


async def test_an_operator_sees_the_bots_of_all_tenants_and_what_of_them_has_stopped(
    person: Person, store: Store, bot: ActiveBot, axe_source: str
) -> None:
    await LastGood(store, Versions(store), "school-7", bot).store()
    reason = "Unauthorized: the token is no longer accepted"
    await BotFaults(store).note("school-7", BotFault("bot telegram", reason, 1_795_000_000_000))
    await BotFaults(store).note("school-9", BotFault("scenarios", "the folder cannot be read", 1_795_000_000_000))
    await person.visit("scenarios")
    await person.sees("school-9")
    await person.sees(f"bot telegram {reason}")
    await person.keeps_picture("bots")
    await person.has_no_barrier_on_a_phone(axe_source, "bots")
    await person.sees("Unauthorized: токен больше не принимают")
    for tenant, part in (("school-7", "bot telegram"), ("school-9", "scenarios")):
        await BotFaults(store).clear(tenant, part)


async def test_an_author_finds_a_run_follows_its_path_and_drops_it(
    person: Person, store: Store, bot: ActiveBot, axe_source: str
) -> None:
    versions = Versions(store)
    version, task = await versions.publish(bot.version, bot.bot), await Queue(store).put("events", NewTask("x"))
    runs = Runs(store, versions, TENANT)
    event: dict[str, Data] = {"id": "e1", "source": "test", "channel": "vk", "user_id": 7, "event_text": "Let me in"}
    run = await runs.begin(run_id(TENANT, "vk.test.e1", "vk:7", 1), task, "vk:7", event, version, ["club.main"])
    delivery = "0.bot.1763712000000000000"
    run = await runs.record(run, run.run.in_order[0].path, completed({"delivery_id": delivery, "reached": 1}))
    await person.visit("runs?scenario=club.main&state=running")
    await person.sees("Let me in")
    await person.keeps_picture("runs")
    await person.presses("club.main")
    await person.sees("Welcome")
    await person.sees("under way")
    assert await person.browser.run(f"Boolean(document.querySelector('a[href=\"#/message/{delivery}\"]'))")
    await runs.record(run, run.run.in_order[1].path, failed("LATE", "the store is closed"))
    await person.sees("the store is closed")
    await person.sees("action 2 ended as failed; the chain is completed")
    assert await person.browser.run("document.querySelectorAll('.box.bad').length") == 1
    await person.keeps_picture("run")
    await person.presses("Drive on")
    await person.sees("The run is driven on.")
    await person.go("dry_run")
    recent = "[...document.querySelectorAll('select[name=run] option')].find((one) => one.innerText.includes('Let me'))"
    await person.browser.wait_for(f"Boolean({recent})")
    await person.chooses("Take an event that has happened", await person.browser.run(f"{recent}.value"))
    await person.browser.wait_for("document.querySelector('input[name=text]').value === 'Let me in'")
    await person.presses("Try it")
    await person.sees("Starts club.rules.")
    await person.go(f"runs/{run.id}")
    await person.presses("Drop")
    await person.writes("Reason", "it hangs")
    await person.confirms()
    await person.sees("An operator has dropped this run")
    await person.has_no_barrier_on_a_phone(axe_source, "run")
    await person.sees("chain этого шага: completed; the store is closed")
    await person.visit("runs?state=dropped&channel=vk&user=7")
    await person.sees("Let me in")


async def test_the_answers_to_a_form_are_a_table_and_a_file(person: Person, store: Store, axe_source: str) -> None:
    forms = Forms(store)
    for address, name, hobbies in (("100001", "Анна Ким", ["chess", "rowing"]), ("100002", "Борис", [])):
        for number, (field, value) in enumerate({"name": name, "hobbies": hobbies, "room": "12"}.items()):
            answer = FormAnswer(number, value, 1_795_000_000_000)
            await forms.note(TENANT, "dormitory", f"telegram-bot:{address}", {field: answer})
    anna = {"id": "form-anna", "name": "Anna K.", "contacts": {"telegram-bot": "100001"}}
    await person.running.call("POST", "/v1/users", anna)
    await person.visit("forms")
    await person.presses("dormitory")
    await person.sees("telegram-bot:100002")
    await person.presses("Anna K.")
    await person.sees("What the bot remembers of this person")
    await person.sees('"room": "12"')
    await person.presses("Back")
    await person.sees("chess, rowing")
    await person.keeps_picture("form")
    await person.has_no_barrier_on_a_phone(axe_source, "form")
    address = "document.querySelector('a[download]').href"
    text = await person.browser.run(f"fetch({address}).then((response) => response.text())")
    assert text.splitlines()[0].removeprefix("\ufeff") == "person;first;last;name;hobbies;room"
    assert len(text.splitlines()) == 3
    await person.visit("runs?channel=telegram-bot&user=100001")
    await person.presses("What the bot remembers of this person")
    await person.sees('"room": "12"')


async def test_an_author_sees_times_buttons_and_a_change_of_the_bot_without_loading_the_page_again(
    person: Person, store: Store, bot: ActiveBot, axe_source: str
) -> None:
    await person.visit("scenarios")
    await person.sees("club.rules")
    await person.sees_no("By itself")
    (bot.folder / "schedule.yaml").write_text("weekly: {each: Monday 8:00, for: people, scenario: club.menu}")
    menu = "menu: {actions: [{type: send, text: Menu, inline: [[{Read the rules: club.rules}]]}]}\n"
    (bot.folder / "scenarios" / "club.yaml").write_text(CLUB + menu)
    await LastGood(store, Versions(store), TENANT, ActiveBot(bot.folder)).store()
    await person.sees("By itself")
    await person.sees("Schedule: Monday 8:00")
    await person.sees("all people of the bot")
    await person.keeps_picture("bot-schedule")
    await person.has_no_barrier_on_a_phone(axe_source, "bot-schedule")
    await person.visit("scenarios/club.menu")
    await person.sees("Read the rules")
    await person.browser.run("document.querySelector('.box').focus()")
    await person.browser.press("Enter")
    await person.sees("- - Read the rules: club.rules")
    await person.keeps_picture("scenario-buttons")
    await person.browser.run("document.querySelectorAll('.box')[1].focus()")
    await person.browser.press("Enter")
    await person.sees("Be kind")
