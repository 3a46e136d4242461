"""Processes of the scenarios are killed where a bot waits for others: between a due moment and its runs, with a request
to another system under way, between an answer and what follows it.

Another process stands ready each time, and goes on.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.answers import Answers
from core.model.clock import to_ms
from core.model.question import AnswerKind, Option, Question
from core.redis.keys import KEYS
from scenarios.bot.model import Variable
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.execution.schedules import Schedules, schedules_tube
from scenarios.schema.variables import APPEND, Change, change_of
from scenarios.stores.forms import Forms
from scenarios.stores.people import People
from scenarios.stores.variables import Variables
from tests.support.http_double import HttpDouble
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.bot import WITHIN, BotInProcesses, storing
from tests.system.crash.cuttable_link import CuttableLink
from tests.system.crash.installation import VK, Installation, person

Block = Callable[[CuttableLink, bytes], None]
BEFORE: Block = CuttableLink.block_requests
"""Killed before the server has what is sent."""
AFTER: Block = CuttableLink.block_replies
"""Killed when the server has it, and the process does not know that."""


class HeldUp(BotInProcesses):
    """`link`: between the server and the process that will be killed."""

    link: CuttableLink

    async def start_behind_link(self, **settings: str) -> None:
        self.link, own = await self.installation.link_to_server()
        self._settings = settings
        self._process = self.start(**own, **settings)

    async def asks(self, run: str) -> bool:
        """Whether the run waits for an answer, and its process has nothing to do."""
        known = await self.installation.core.store.command("EXISTS", f"run:{{0}}:{run}")
        return bool(known and (await self.read(run)).actions[0].waits_for) and await self.is_idle()

    async def kill(self) -> None:
        """Kills the process, while another one stands ready."""
        await self.start(**self._settings).ready()
        self._process.kill()
        self.link.cut()

    async def kill_when_held_up(self) -> None:
        await until(lambda: self.link.blocked, within=WITHIN)
        await self.kill()


@pytest.fixture
async def bot(installation: Installation, tmp_path: Path) -> HeldUp:
    await installation.courier(VK)
    return HeldUp(installation, tmp_path / "bot")


# a schedule

PEOPLE = (1, 2, 3)
LOOKED = KEYS["schedule_looked"].at(0, TENANT, "exam").encode()
MARK = b"SET\r\n$%d\r\n%b" % (len(LOOKED), LOOKED)
"""Bytes in the command that stores until when people were looked at."""
SCHEDULE = """
yearly: {each: "0 0 1 1 *", for: people, scenario: s.main}
exam: {before: person.exam, by: 1h, scenario: s.main}
"""
DUE = """
    - {type: set, variables: {person.times: {add: 1}}}
    - {type: send, text: "{schedule} {user_id}", chain: completed}
"""


@pytest.fixture
def scheduled(bot: HeldUp) -> HeldUp:
    bot.write("schedule.yaml", SCHEDULE).write("variables.yaml", "person: {times: number, exam: date}")
    bot.actions(DUE)
    return bot


async def meet(bot: HeldUp, exam: datetime | None = None) -> None:
    """Has the bot know some people, who have an exam then."""
    store = bot.installation.core.store
    for number in PEOPLE:
        event = {"channel": "vk", "user_id": VK.address(number)}
        await People(store, TENANT).met(event)
        if exam:
            change = change_of("person.exam", exam.isoformat(), {"person.exam": Variable("date")}, UTC)
            await Variables(store, TENANT).change(f"exam of {number}", event, [change])


async def arm(bot: HeldUp, at: datetime) -> None:
    """Puts what a process of the scenarios puts that runs at a time in the past, and then no more."""
    store = bot.installation.core.store
    store.clock_offset_ms = int((at - datetime.now(UTC)).total_seconds() * 1000)
    async with open_services(store, ScenarioOptions(TENANT)) as services:
        await services.core.client.tubes.create(schedules_tube())
        await Schedules(services, ActiveBot(bot.folder)).arm_all()
    store.clock_offset_ms = 0


async def assert_each_was_started_once(bot: HeldUp, schedule: str) -> None:
    await until(lambda: all(bot.texts(number) for number in PEOPLE), within=WITHIN)
    await until(bot.is_idle, within=WITHIN)
    for number in PEOPLE:
        assert bot.texts(number) == [f"{schedule} {VK.address(number)}"]
        assert (await bot.remembered(number))["times"] == 1
    await bot.installation.audit()


@pytest.mark.parametrize("block", [BEFORE, AFTER], ids=["before", "after"])
async def test_a_moment_starts_each_person_once_if_the_process_is_killed_between_two_people(
    scheduled: HeldUp, block: Block
) -> None:
    await meet(scheduled)
    await arm(scheduled, datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC) - timedelta(minutes=1))
    await scheduled.start_behind_link()
    block(scheduled.link, VK.address(2).encode())
    await scheduled.kill_when_held_up()
    await assert_each_was_started_once(scheduled, "yearly")


@pytest.mark.parametrize("block", [BEFORE, AFTER], ids=["before", "after"])
async def test_a_date_starts_each_person_once_if_the_process_is_killed_at_the_mark_of_its_search(
    scheduled: HeldUp, block: Block
) -> None:
    """The runs are put before the mark says until when people were looked at."""
    now = datetime.now(UTC)
    await meet(scheduled, now + timedelta(minutes=59))
    await arm(scheduled, now - timedelta(minutes=5))
    await scheduled.start_behind_link()
    block(scheduled.link, MARK)
    await scheduled.kill_when_held_up()
    await assert_each_was_started_once(scheduled, "exam")


# a request to another system

REQUEST = """
    - {type: http_request, url: "URL", FIELDS}
    - {type: send, text: "{response.status|fallback:unclear}", chain: any}
"""
UNCLEAR = "it is not known whether the request of before a crash has arrived"
REQUESTS = [
    # fields of the action, how it ends, how often the other system is asked, what the person gets
    pytest.param("method: GET", ("completed", ""), 2, "200", id="a read"),
    pytest.param("method: POST", ("unknown", UNCLEAR), 1, "unclear", id="a write"),
    pytest.param("method: POST, idempotency_key: true", ("completed", ""), 2, "200", id="a write with a key"),
]


@pytest.fixture
async def other() -> AsyncIterator[HttpDouble]:
    async with HttpDouble() as double:
        yield double
        double.answering.set()


@pytest.mark.parametrize("is_answered", [False, True], ids=["while it is out", "before its result is stored"])
@pytest.mark.parametrize(("fields", "end", "requests", "text"), REQUESTS)
async def test_a_request_whose_process_is_killed_is_repeated_only_where_that_is_safe(
    bot: HeldUp, other: HttpDouble, is_answered: bool, fields: str, end: tuple[str, str], requests: int, text: str
) -> None:
    bot.actions(REQUEST.replace("URL", other.url).replace("FIELDS", fields))
    await bot.start_behind_link(ADA_WEBHOOK_ALLOW_PRIVATE="on")
    if is_answered:
        bot.link.block_requests(storing(0))
    else:
        other.answering.clear()
    run = await bot.says(1, "x")
    await until(lambda: bot.link.blocked if is_answered else other.requests, within=WITHIN)
    await bot.kill()
    other.answering.set()
    found = await bot.over(run)
    assert (found.actions[0].state, found.actions[0].error) == end
    assert len(other.requests) == requests
    assert len({one.headers.get("Idempotency-Key") for one in other.requests}) == 1
    await until(bot.is_idle, within=WITHIN)
    assert bot.texts(1) == [text]
    await bot.installation.audit()


# a question

FORM = """
    - {type: ask, text: "Name?", save: person.name, form: signup}
    - {type: set, variables: {person.steps: {append: "{answer}"}}, chain: completed}
    - {type: ask, text: "Room?", options: [single, double], field: room, form: signup, chain: completed}
    - {type: send, text: "{person.name}: {answer}", chain: completed}
"""
STORING_ANSWER, TAKE_OVER, NOTE = storing(0), b"park_run", b"answer:"
POINTS = [
    pytest.param(BEFORE, NOTE, id="before the answer is noted"),
    pytest.param(AFTER, NOTE, id="between note and take-over"),
    pytest.param(BEFORE, TAKE_OVER, id="before the take-over"),
    pytest.param(AFTER, TAKE_OVER, id="after the take-over"),
    pytest.param(BEFORE, STORING_ANSWER, id="before the answer is stored"),
    pytest.param(AFTER, STORING_ANSWER, id="after the answer is stored"),
]


@pytest.mark.parametrize(("block", "at"), POINTS)
async def test_an_answer_is_taken_once_if_the_process_is_killed(bot: HeldUp, block: Block, at: bytes) -> None:
    bot.write("variables.yaml", "person: {name: text, steps: list}").actions(FORM)
    await bot.start_behind_link()
    run = await bot.says(1, "hello")
    await until(lambda: bot.asks(run), within=WITHIN)
    block(bot.link, at)
    await bot.says(1, "Anna")
    await bot.kill_when_held_up()
    await until(lambda: len(bot.texts(1)) == 2, within=WITHIN)
    await bot.says(1, "2")
    await bot.over(run)
    await until(bot.installation.is_empty, within=WITHIN)
    assert bot.texts(1) == ["Name?", "Room?", "Anna: double"]
    assert await bot.remembered(1) == {"name": "Anna", "steps": ["Anna"]}
    table = await Forms(bot.installation.core.store).table(TENANT, "signup")
    assert [row.answers for row in table.rows] == [{"name": "Anna", "room": "double"}]
    await bot.installation.audit()


# a place

VARIABLES = "bot: {washes: list}\nperson: {washes: list}"
RESERVE = """
    - {type: reserve, kind: washes, place: Monday, on_failure: [{type: send, text: taken}]}
    - {type: send, text: "{place}, {left} left", chain: completed}
"""
RELEASE = """
    - {type: reserve, kind: washes, release: true}
    - {type: send, text: "{places|length} places", chain: completed}
"""
PLAN, OF_BOT, OF_PERSON = b"remember_step", b":bot\r\n", b":person\r\n"
PLACES = {"plan": PLAN, "list of the bot": OF_BOT, "list of the person": OF_PERSON, "end": storing(0)}


@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
async def test_a_place_is_reserved_once_if_the_process_is_killed_after(bot: HeldUp, at: bytes) -> None:
    bot.write("variables.yaml", VARIABLES).actions(RESERVE)
    await bot.start_behind_link()
    AFTER(bot.link, at)
    await bot.says(1, "hello")
    await bot.kill_when_held_up()
    await until(lambda: bot.texts(1), within=WITHIN)
    await bot.says(2, "hello")
    await until(lambda: bot.texts(2), within=WITHIN)
    assert (bot.texts(1), bot.texts(2)) == (["Monday, 0 left"], ["taken"])
    assert await places(bot) == (["Monday"], ["Monday"])
    await bot.installation.audit()


@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
async def test_a_place_is_given_back_once_if_the_process_is_killed_after(bot: HeldUp, at: bytes) -> None:
    """Another person has the same place, and keeps it."""
    bot.write("variables.yaml", VARIABLES).actions(RELEASE)
    for scope, owner in (("bot", 1), ("person", 1), ("bot", 2), ("person", 2)):
        await reserve(bot, scope, owner)
    await bot.start_behind_link()
    AFTER(bot.link, at)
    await bot.says(1, "hello")
    await bot.kill_when_held_up()
    await until(lambda: bot.texts(1), within=WITHIN)
    assert bot.texts(1) == ["0 places"]
    assert await places(bot) == (["Monday"], [])
    await bot.installation.audit()


async def reserve(bot: HeldUp, scope: str, owner: int) -> None:
    """Writes what an earlier step has reserved."""
    variables = Variables(bot.installation.core.store, TENANT)
    change = Change(scope, "washes", APPEND, "Monday", 0, [])
    await variables.change(f"{scope}{owner}", {"channel": "vk", "user_id": VK.address(owner)}, [change])


async def places(bot: HeldUp) -> tuple[object, object]:
    """The places of all people, and those of the first person."""
    stored = Variables(bot.installation.core.store, TENANT).stored
    now = to_ms(bot.installation.core.store.now())
    event = {"channel": "vk", "user_id": VK.address(1)}
    of_bot, of_person = [await stored(scope, event, now) for scope in ("bot", "person")]
    return of_bot["washes"], of_person["washes"]


# an answer to the question of a delivery

COMES = Question(AnswerKind.CHOICE, [Option("yes", "Comes"), Option("no", "Stays")], "en")


@pytest.mark.parametrize("block", [pytest.param(BEFORE, id="before its event"), pytest.param(AFTER, id="after it")])
async def test_an_answer_begins_a_scenario_once_although_its_process_is_killed(bot: HeldUp, block: Block) -> None:
    installation = bot.installation
    bot.write("scenarios/s.yaml", "noted: {actions: [{type: send, text: 'Noted: {event_text}'}]}")
    bot.write("triggers.yaml", "answer: {'*': s.noted}")
    await bot.start().ready()
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    await api.ready()
    accepted = await installation.deliver(person(1, VK), question=COMES)
    await until(lambda: bot.texts(1) == ["hello"], within=WITHIN)
    block(link, b"_put_once\r\n")
    await Answers(installation.core.store).enter(accepted.key, TENANT, "1", "yes", "anna", "e1")
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(lambda: len(bot.texts(1)) == 2, within=WITHIN)
    left = ["bot_calls.vk:ready"]  # the change of the buttons: the process that makes it does not run here
    await until(lambda: installation.is_empty(*left), within=WITHIN)
    assert bot.texts(1) == ["hello", "Noted: Comes"]
    await installation.audit()
