"""Questions on a real server: the answer goes on with the run, also after a crash, in time or not (C-95)."""

from datetime import timedelta
from functools import partial

import pytest

from core.model.history_key import HistoryKey
from core.model.people import User
from core.redis.store import Argument, Store
from couriers.sending.interface import Outcome, Sent, Unknown
from scenarios.stores.forms import Forms
from scenarios.stores.variables import Variables
from tests.scenarios.execution.conftest import Installation, Running, states
from tests.support.delivery_progress import GONE, Gate
from tests.support.stack import TENANT, FakeCourier
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

FORM = """
start:
  actions:
    - {type: ask, text: "Your name?", save: person.name, form: signup, rules: [{rule: length_min, value: 2}],
       hint: "Two letters at least.", attempts: 3, timeout: 40m, remind: 25m}
    - {type: ask, text: "Which room?", options: [Single, Double], field: room, form: signup, chain: completed}
    - {type: send, text: "{person.name}: {answer}", chain: completed}
    - {type: send, text: "Bye: {error|fallback:later}", chain: [failed, drop]}
help: {actions: [{type: send, text: Help}]}
"""


@pytest.fixture
def form(installation: Installation) -> Installation:
    installation.write("triggers.yaml", 'text: {exact: {/start: s.start, /help: s.help}, "*": s.help}')
    installation.write("scenarios/s.yaml", FORM)
    installation.write("variables.yaml", "person: {name: text}")
    return installation


async def asked(form: Installation, count: int) -> None:
    await until(lambda: len(form.texts) >= count)


async def test_a_form_asks_until_the_answers_are_right_and_stores_them(form: Installation) -> None:
    await form.start()
    run = await form.put("/start")
    for count, text in enumerate(("A", "Anna", "3", "2"), 1):
        await asked(form, count)
        await form.put(text)
    await form.over(run)
    assert form.texts == ["Your name?", "Two letters at least.", "Which room?", "Which room?", "Anna: Double"]
    table = await Forms(form.stack.store).table(TENANT, "signup")
    assert (table.columns, [row.answers for row in table.rows]) == (
        ["name", "room"],
        [{"name": "Anna", "room": "Double"}],
    )
    now = int(form.stack.now().timestamp() * 1000)
    assert await Variables(form.stack.store, TENANT).stored("person", {"channel": "echo", "user_id": "7"}, now) == {
        "name": "Anna"
    }
    await form.play("anything")
    assert form.texts[-1] == "Help"


BOOKINGS = """
book:
  actions:
    - {type: ask, text: "Which slot?", form: wash, field: slot, row: "{event_text}"}
    - {type: form, form: wash, row: "{event_text}", values: {by: "{user_id}", paid: yes}, chain: completed}
    - {type: send, text: "{row_names|list} {count}", chain: true}
move:
  actions:
    - {type: form, form: wash, row: book 1, values: {slot: "12:00"}}
    - {type: send, text: "{rows[0].slot}", chain: true}
back:
  actions:
    - {type: form, form: wash, row: book 1, delete: true}
    - {type: send, text: "{count|fallback:}{error|fallback:}", chain: any}
all:
  actions:
    - {type: form, form: wash, everybody: true}
    - {type: send, text: "{rows[-1].person} of {count}", chain: true}
"""


async def test_a_person_has_several_rows_of_a_form_which_are_changed_and_deleted(installation: Installation) -> None:
    exact = "/move: w.move, /back: w.back, /all: w.all"
    installation.write("triggers.yaml", f"text: {{exact: {{{exact}}}, starts_with: {{book: w.book}}}}")
    installation.write("scenarios/w.yaml", BOOKINGS)
    await installation.start()
    for person, row in (("7", "book 1"), ("7", "book 2"), ("8", "book 1")):
        run = await installation.put(row, user_id=person, chat_id=person)
        await until(partial(parked, installation, run))
        await installation.put("9:00", user_id=person, chat_id=person)
        await installation.over(run)
    for text in ("/move", "/back", "/back", "/all"):
        await installation.play(text)
    assert [text for text in installation.texts if text != "Which slot?"] == [
        "• book 1 1",
        "• book 1\n• book 2 2",
        "• book 1 1",
        "12:00",
        "1",
        "в форме wash нет строки 'book 1' этого человека",
        "echo:8 of 2",
    ]
    table = await Forms(installation.stack.store).table(TENANT, "wash")
    assert (table.columns, [row.answers for row in table.rows]) == (
        ["row", "slot", "by", "paid"],
        [
            {"row": row, "slot": "9:00", "by": person, "paid": "yes"}
            for row, person in (("book 2", "7"), ("book 1", "8"))
        ],
    )


async def test_without_an_answer_it_reminds_and_gives_up_in_time(form: Installation) -> None:
    await form.start()
    run = await form.put("/start")
    await asked(form, 1)
    await until(lambda: parked(form, run))
    view = (await form.read(run)).actions[0]
    assert view.send is not None
    assert (view.send["text"], str(view.waits_for)[:15]) == ("Your name?", "an answer until")
    await form.pass_time(timedelta(minutes=26))
    await asked(form, 2)
    assert form.texts == ["Your name?", "Your name?"]
    await form.pass_time(timedelta(minutes=15))
    await form.over(run)
    assert form.texts[-1] == "Bye: ответа вовремя не было"


async def parked(form: Installation, run: str) -> bool:
    return await form.exists(run) and (await form.read(run)).actions[0].waits_for is not None


async def test_a_command_begins_something_else_and_the_form_ends(form: Installation) -> None:
    await form.start()
    run = await form.put("/start")
    await asked(form, 1)
    await form.play("/help")
    assert states(await form.over(run)) == ["drop", "drop", "drop", "completed"]
    assert sorted(form.texts) == ["Bye: later", "Help", "Your name?"]


async def test_too_many_wrong_answers_end_the_question(form: Installation) -> None:
    await form.start()
    run = await form.put("/start")
    for count in range(1, 4):
        await asked(form, count)
        await form.put("A")
    assert (await form.over(run)).actions[0].error.startswith("no right answer in 3 attempts")


PHASES = pytest.mark.parametrize("patience", [30.0, 0.0], ids=["awaited", "parked"])


@PHASES
@pytest.mark.parametrize(("outcome", "state"), [(GONE, "failed"), (Unknown(), "unknown")])
async def test_a_question_that_did_not_arrive_ends_and_the_next_text_is_no_answer_to_it(
    form: Installation, outcome: Outcome, state: str, patience: float
) -> None:
    form.courier.respond = lambda message: outcome if message.text == "Your name?" else Sent("1")
    await form.start(patience=patience)
    view = await form.over(await form.put("/start"))
    question = view.actions[0]
    assert states(view) == [state, "drop", "drop", "completed"]
    assert (question.results["verdict"], bool(question.results["delivery_id"])) == ("nothing_worked", True)
    assert form.texts[-1].startswith("Bye: ")
    await form.play("Anna")
    assert form.texts[-1] == "Help"


async def test_a_text_that_comes_before_the_run_has_noticed_is_no_answer_either(form: Installation) -> None:
    """What the person writes finds out, before the run of the question was woken."""
    gate = Gate(lambda message: GONE if message.text == "Your name?" else Sent("1"))
    form.courier.respond = gate
    lease = timedelta(seconds=1)
    running = await form.start(patience=0.0, lease=lease)
    run = await form.put("/start")
    await until(lambda: parked(form, run))
    await running.kill()
    gate.opened.set()
    key = HistoryKey.parse((await form.read(run)).actions[0].results["delivery_id"])
    await form.stack.finished(key)
    await form.put("Anna")
    await form.start(patience=0.0, lease=lease)
    assert states(await form.over(run)) == ["failed", "drop", "drop", "completed"]
    await until(lambda: "Help" in form.texts)


async def test_show_names_the_delivery_of_a_question_and_a_reminder_that_fails_ends_nothing(
    form: Installation,
) -> None:
    await form.start()
    run = await form.put("/start")
    await until(lambda: verdict_is(form, run, "all_reached"))
    form.courier.respond = lambda message: GONE
    await form.pass_time(timedelta(minutes=26))
    await until(lambda: verdict_is(form, run, "nothing_worked"))
    form.courier.respond = lambda message: Sent("1")
    await form.put("Anna")
    await until(lambda: form.texts[-1] == "Which room?")
    assert (await form.read(run)).actions[0].results["verdict"] == "nothing_worked"


async def verdict_is(form: Installation, run: str, verdict: str) -> bool:
    return await parked(form, run) and (await form.read(run)).actions[0].results.get("verdict") == verdict


class Killed(Store):
    """Kills its process before or after the n-th script from the moment at which `kill` is set."""

    left: int | None = None
    running: Running | None = None

    async def run(self, name: str, shard: int, *arguments: Argument) -> object:
        await self._count()
        reply = await super().run(name, shard, *arguments)
        await self._count()
        return reply

    async def _count(self) -> None:
        if self.left is None or self.running is None:
            return
        self.left -= 1
        if self.left < 0:
            self.running.task.cancel()
            raise ConnectionError("killed")


@pytest.mark.parametrize("crash", range(0, 14, 2))
async def test_a_crash_while_an_answer_is_taken_loses_and_doubles_nothing(form: Installation, crash: int) -> None:
    lease = timedelta(milliseconds=300)
    running = await form.start(Killed, lease=lease)
    store = running.store
    assert isinstance(store, Killed)
    run = await form.put("/start")
    await asked(form, 1)
    await until(lambda: parked(form, run))
    store.running, store.left = running, crash
    await form.put("Anna")
    await until(lambda: running.task.done() or len(form.texts) > 1)
    await form.start(lease=lease)
    await asked(form, 2)
    await form.put("Single")
    await form.over(run)
    assert form.texts == ["Your name?", "Which room?", "Anna: Single"]


async def test_a_question_is_answered_from_another_channel_of_the_person(form: Installation) -> None:
    """What is no right answer, or begins something, stays where it was written."""
    sms = FakeCourier("sms")
    await form.stack.courier(sms)
    await form.directory.users.create(TENANT, User(1, "Anna", contacts={"echo": ["7"], "sms": ["+79990000007"]}))
    phone = {"channel": "sms", "user_id": "+79990000007", "chat_id": "+79990000007"}
    await form.start()
    run = await form.put("/start")
    await asked(form, 1)
    await form.play("A", **phone)  # too short
    await form.play("/help", **phone)
    await form.put("Anna", **phone)
    await asked(form, 2)
    await form.play("Third", **phone)
    await form.put("Double", **phone)
    await form.over(run)
    assert form.texts == ["Your name?", "Which room?", "Anna: Double"]
    await form.directory.users.remove_contact(TENANT, 1, "sms", "+79990000007")
    await form.put("/start")
    await asked(form, 4)
    await form.play("Boris", **phone)
    assert [one.text for one in sms.attempted] == ["Help"] * 4


async def test_a_hint_that_cannot_be_sent_holds_up_nothing(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """The event of the wrong answer was repeated again and again, and the person was answered nothing any more."""
    installation.write("triggers.yaml", "text: {'*': s.start}")
    installation.write(
        "scenarios/s.yaml",
        "start:\n  actions:\n    - {type: ask, text: How many?, answer: number, hint: '1 < 2'}\n"
        "    - {type: send, text: '{answer}', chain: completed}\n",
    )
    await installation.start()
    run = await installation.put("/start")
    await asked(installation, 1)
    await installation.put("many")
    await installation.put("5")
    await installation.over(run)
    assert installation.texts == ["How many?", "5"]
    assert "cannot be read as HTML" in caplog.text
