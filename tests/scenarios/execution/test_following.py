"""A person sees what becomes of its delivery in one message, cancels it and sends again; any bot does this (C-115)."""

import asyncio
from datetime import timedelta

import pytest

from core.answers import Answers
from core.directory.linking import Linking
from core.directory.preferences import Preferences
from core.model.content import EVERY_FEATURE, Feature
from core.model.delivery import GuardedChild, Recipient
from core.model.history_key import HistoryKey
from core.model.people import Group, User
from core.model.question import AnswerKind, Option, Question
from core.model.states import Reason
from couriers.email import LinkCodeMailer
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from scenarios.inspection.runs import RunView
from scenarios.sending.status import answers_text, missed_text, status_press
from tests.scenarios.execution.conftest import PERSON, Installation
from tests.support.outbox import Outbox
from tests.support.stack import TENANT, FakeCourier
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

BOT = """
write:
  actions:
    - {type: order, to: {group: A}, text: No classes, deliver_at: "{event_text|regex:at (.+)|fallback:now}"}
    - {type: follow_delivery, chain: completed}
asks:
  actions:
    - {type: order, to: {group: A}, text: No classes?, answer: [Come, Stay]}
    - {type: follow_delivery, chain: completed}
button:
  actions:
    - {type: follow_delivery, press: "{callback_data}"}
    - {type: send, text: "Refused: {code}", callback_edit: false, chain: failed}
    - {type: send, text: "({notice})", callback_edit: false, chain: drop, when: {notice: {rule: not_empty}}}
start:
  actions:
    - {type: link_contact, written: "{event_text|regex:^/start (.+)|fallback:{event_text}}"}
    - {type: send, text: "{linked} {email}{name}", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
unlink:
  actions:
    - {type: unlink_contact}
    - {type: send, text: "Unlinked", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
console:
  actions:
    - {type: sign_in_link}
    - {type: send, text: "{sign_in_url} {lasts}", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
settings:
  actions:
    - {type: settings_link}
    - {type: send, text: "{settings_url}", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
"""
REFUSED = "p3"
COMES = Question(AnswerKind.CHOICE, [Option("1", "Come"), Option("2", "Stay")], "en")


@pytest.fixture
def goes_on() -> asyncio.Event:
    """When the provider answers to the message for the group."""
    return asyncio.Event()


@pytest.fixture
async def school(bare: Installation, goes_on: asyncio.Event) -> Installation:
    """Anna orders; Boris is reached, Vera refuses, Gleb has no contact."""
    school = bare
    numbers = iter(range(100, 1000))

    async def respond(message: Message) -> Outcome:
        if "classes" in message.text:
            await goes_on.wait()
        is_refused = message.address == REFUSED and "classes" in message.text
        return Rejected(Reason.BLOCKED, "blocked") if is_refused else Sent(str(next(numbers)))

    school.courier = FakeCourier(respond=respond, shows=EVERY_FEATURE)
    await school.start_courier()
    school.write("scenarios/s.yaml", BOT).write(
        "triggers.yaml",
        "text: {exact: {/unlink: s.unlink, /console: s.console, /settings: s.settings},\n"
        "  starts_with: {/write: s.write, /asks: s.asks}, '*': s.start}\n"
        "callback: {contains: {delivery: s.button}}",
    )
    people = (
        User(1, "Анна", "anna@example.org", "trainer", "en", {"echo": [PERSON]}),
        User(2, "Борис", "boris@example.org", "student", "en", {"echo": ["p2"]}),
        User(3, "Вера", "vera@example.org", "student", "en", {"echo": [REFUSED]}),
        User(4, "Глеб", "gleb@example.org", "student", "en", {}),
    )
    for user in people:
        await school.directory.users.create(TENANT, user)
    await school.directory.groups.create(TENANT, Group("A", "A"), [2, 3, 4])
    await school.directory.ownerships.own(TENANT, 1, "group", "A")
    return school


def statuses(school: Installation) -> list[Message]:
    """The messages that show a status."""
    return [one for one in school.courier.attempted if one.text.startswith(tuple("🕓⏳✅⚠❌🚫ℹ"))]


def last_data(school: Installation, verb: str) -> str:
    content = statuses(school)[-1].content
    data = [button.data for row in content.inline for button in row] if content else []
    return next(one for one in data if (press := status_press(one)) and press.verb == verb)


async def press(school: Installation, data: str, user: str = PERSON) -> RunView:
    event = {"event_text": None, "callback_data": data, "message_id": 100, "user_id": user, "chat_id": user}
    return await school.play(**event)  # type: ignore[arg-type]


async def test_one_message_shows_the_delivery_until_it_has_ended(school: Installation, goes_on: asyncio.Event) -> None:
    await school.start()
    await school.play("/write")
    await until(lambda: statuses(school))
    assert statuses(school)[0].text.startswith("⏳ Being sent.")
    goes_on.set()
    await until(lambda: statuses(school)[-1:] and statuses(school)[-1].text.startswith("⚠"))
    first, *edits = statuses(school)
    assert first.content is None or not first.content.edit
    assert edits[-1].content is not None
    assert all(one.content and one.content.edit == edits[-1].content.edit != "" for one in edits), "one message"
    assert "People: 3, reached: 1" in edits[-1].text
    await press(school, last_data(school, "missed"))
    missed = "Not reached: 2\nВера – has blocked the messages\nГлеб – has no contact"
    await until(lambda: missed in school.texts)  # the run is over when the message is ordered
    await press(school, last_data(school, "retry"))
    assert "(Sending again to: 1)" in school.texts


async def test_a_scheduled_delivery_is_cancelled_by_its_sender_alone(school: Installation) -> None:
    await school.start()
    await school.play("/write at tomorrow 9:00")
    await until(lambda: statuses(school))
    data = last_data(school, "cancel")
    await press(school, data, user="p2")
    assert school.texts[-1] == "Refused: HISTORY_NOT_FOUND", "the same button, pressed by Boris"
    await press(school, data)
    await until(lambda: statuses(school)[-1].text.startswith("🚫"))
    assert [one.text for one in school.courier.attempted if "classes" in one.text] == []
    before = len(school.texts)
    await press(school, data)
    assert "(🚫 Cancelled.)" in school.texts[before:]


async def test_the_status_counts_the_answers_until_the_question_is_closed(
    school: Installation, goes_on: asyncio.Event
) -> None:
    goes_on.set()
    await school.start()
    await school.play("/asks")

    async def shows(*lines: str) -> None:
        await until(lambda: statuses(school)[-1:] and statuses(school)[-1].text.splitlines()[3:] == list(lines))

    await shows("No answer yet: 1", "Not reached: 2", "Come: 0", "Stay: 0")
    await press(school, last_data(school, "remind"))
    assert "(Reminded: 1)" in school.texts
    pressed = status_press(last_data(school, "close"))
    assert pressed
    answers = Answers(school.stack.store)
    for number, (value, counted) in enumerate({"1": ("Come: 1", "Stay: 0"), "2": ("Come: 0", "Stay: 1")}.items()):
        await answers.enter(pressed.key(1), TENANT, "2", value, "anna", f"e{number}")
        await shows("Not reached: 2", "Answered: 1", *counted)
    await answers.enter(pressed.key(1), TENANT, "2", "1", "anna", "again")
    await shows("Not reached: 2", "Answered: 1", "Come: 1", "Stay: 0")
    await press(school, last_data(school, "answers"))
    listed = "Not reached: 2\nВера\nГлеб\n\nCome: 1\nБорис"
    await until(lambda: listed in school.texts)
    await press(school, last_data(school, "close"))
    assert "(The question is closed.)" in school.texts
    assert last_data(school, "answers"), "a closed question has answers, too"
    with pytest.raises(StopIteration):
        last_data(school, "close")


async def test_answers_are_listed_by_option_with_children_in_place_of_guardians(school: Installation) -> None:
    guardian = Recipient(2, "Борис", contacts={"echo": ["p2"]}, children=[GuardedChild(4, None)])
    own = Recipient(3, "Вера", contacts={"echo": ["p5"]})
    asked = await school.stack.deliver(guardian, own, channels=("echo",), question=COMES)
    await school.stack.finished(asked.key)
    answers, deliveries = Answers(school.stack.store), school.stack.deliveries
    await answers.enter(asked.key, TENANT, "4", "1", "anna", "e1")

    async def listed(key: HistoryKey) -> str:
        return await answers_text(deliveries, school.directory.users, key, TENANT, "en")

    assert await listed(asked.key) == "No answer yet: 1\nВера\n\nCome: 1\nГлеб"
    assert await missed_text(deliveries, asked.key, TENANT, "en") == "Everybody was reached."
    words = await school.stack.deliver(own, channels=("echo",), question=Question(AnswerKind.TEXT, [], "en"))
    await school.stack.finished(words.key)
    await answers.enter(words.key, TENANT, "3", "late:\nthe bus", "anna", "e2")
    assert await listed(words.key) == "Answered: 1\nВера – late: the bus"


async def test_a_channel_without_editing_gets_the_end_once(school: Installation, goes_on: asyncio.Event) -> None:
    goes_on.set()
    await school.stack.stop(school.stack.runtimes[0])
    school.courier.shows = EVERY_FEATURE - {Feature.EDIT}
    await school.start_courier()
    await school.start()
    await school.play("/write")
    await until(lambda: school.texts == ["No classes", "No classes"])
    await school.pass_time(timedelta(seconds=3))
    await until(lambda: statuses(school))
    assert [one.text.splitlines()[1] for one in statuses(school)] == ["People: 3, reached: 1"]


async def test_the_status_goes_on_in_another_process(school: Installation, goes_on: asyncio.Event) -> None:
    goes_on.set()
    first = await school.start(lease=timedelta(seconds=1))
    await school.play("/write at tomorrow 9:00")
    await until(lambda: statuses(school))
    await first.kill()
    await school.start(lease=timedelta(seconds=1))
    await school.pass_time(timedelta(days=2))
    await until(lambda: statuses(school)[-1].text.startswith("⚠"))
    assert [one.text for one in statuses(school)].count(statuses(school)[-1].text) == 1


@pytest.fixture
def outbox(school: Installation) -> Outbox:
    outbox = Outbox()
    school.options = {"linking": Linking(school.stack.store, school.directory, LinkCodeMailer(outbox))}
    return outbox


async def test_a_bot_links_a_contact_by_a_mailed_code_and_unlinks_it(school: Installation, outbox: Outbox) -> None:
    await school.start()
    stranger = {"user_id": "p4", "chat_id": "p4"}
    for text in ("nonsense", "a@", "nobody@example.org", "gleb@example.org"):
        await school.play(text, **stranger)
    assert school.texts == ["No: CODE_MALFORMED", "No: EMAIL_MALFORMED", "No: EMAIL_UNKNOWN", "mailed gleb@example.org"]
    await school.play("222222", **stranger)
    await school.play(f"/start {outbox.codes[-1]}", **stranger)
    assert school.texts[-2:] == ["No: CODE_WRONG", "linked Глеб"]
    user = await school.directory.users.by_contact(TENANT, "echo", "p4")
    assert user is not None
    assert user.id == 4
    for _ in range(2):
        await school.play("/unlink", **stranger)
    assert school.texts[-2:] == ["Unlinked", "No: CONTACT_NOT_LINKED"]


async def test_without_a_mail_server_and_a_public_address_actions_say_so(school: Installation) -> None:
    await school.start()
    await school.play("gleb@example.org", user_id="p4", chat_id="p4")
    await school.play("/console")
    await school.play("/console", user_id="p4", chat_id="p4")
    assert school.texts == ["No: MAIL_NOT_SET_UP", "No: PUBLIC_URL_NOT_SET", "No: PERSON_UNKNOWN"]


async def test_a_link_signs_in_and_is_hidden_in_what_is_shown_of_the_run(school: Installation) -> None:
    school.options = {"public_url": "https://ada.example.org/"}
    await school.start()
    run = await school.play("/console")
    url, lasts = school.texts[-1].split(" ", 1)
    assert url.startswith("https://ada.example.org/#/sign-in/")
    assert lasts == "10 min"
    assert url not in repr(run)


async def test_a_link_leads_to_the_page_of_its_person_and_is_hidden_in_the_run(
    school: Installation,
) -> None:
    school.options = {"public_url": "https://ada.example.org/"}
    await school.start()
    run = await school.play("/settings")
    start, _, token = school.texts[-1].partition("/p/")
    assert start == "https://ada.example.org"
    assert (await Preferences(school.stack.store, school.directory).open(token)).user.id == 1
    assert token not in repr(run)
