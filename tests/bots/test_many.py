"""More groups than fit on a page of the keyboard or of a read, and more people than a message can name."""

import asyncio

from bots.button_data import ButtonData
from bots.catalogue import text
from bots.conversation.keyboards import PAGE, Keyboards
from bots.conversation.state import SELECT, State
from bots.conversation.status import StatusConversation, StatusView
from bots.dialog_event import DialogEvent
from core.model.delivery import Recipient, Sender
from core.model.people import Group, Supergroup, User
from core.orders.choices import Addressees, Choice
from core.orders.following import StatusTasks
from tests.bots.telegram.chat import School
from tests.bots.telegram.conftest import bot_api, idle_school
from tests.support.stack import TENANT

__all__ = ["bot_api", "idle_school"]


def toggles(page: int) -> list[str]:
    """The groups on one page of 20."""
    choices = [Choice("group", number, f"Group {number}") for number in range(20)]
    keyboards = Keyboards(lambda content: content, "en", State(SELECT, "d", page=page))
    labels = [button.label for row in keyboards.selection(choices) for button in row]
    return [label for label in labels if label.startswith("Group ")]


def test_each_page_of_the_keyboard_shows_its_own_groups() -> None:
    shown = [toggles(page) for page in range(3)]
    assert [len(page) for page in shown] == [PAGE, PAGE, 20 - 2 * PAGE]
    assert [name for page in shown for name in page] == [f"Group {number}" for number in range(20)]
    assert toggles(7) == shown[2]  # a page that is not there any more


async def test_an_administrator_sees_more_groups_than_one_read_returns(idle_school: School) -> None:
    directory, numbers = idle_school.directory, range(1000, 1501)
    await asyncio.gather(*(directory.groups.create(TENANT, Group(number, f"G{number}")) for number in numbers))
    await asyncio.gather(*(directory.supergroups.create(TENANT, Supergroup(f"s{n}", f"S{n}", [101])) for n in numbers))
    choices = await Addressees(directory, TENANT).of(User(9, "Root", None, "admin", "en"))
    titles = {choice.title for choice in choices}
    assert {f"G{number}" for number in numbers} | {f"S{number}" for number in numbers} <= titles


async def test_of_hundreds_who_were_not_reached_thirty_five_are_named_and_all_are_counted(idle_school: School) -> None:
    services, stack = idle_school.services, idle_school.stack
    people = [Recipient(number, name=f"P{number}") for number in range(1000, 1510)]
    accepted = await stack.deliver(*people, channels=["sms"], sender=Sender(1))
    view = StatusView(await ButtonData.open(services.core.store, TENANT), services.timezone)
    status = StatusConversation(services, view, StatusTasks(services.core.client, TENANT, "telegram-bot"))
    press = DialogEvent("1", "telegram-bot", "100001", button="b", message="5", callback="c")
    content = f"d.missed.{accepted.key.shard}.{accepted.key.ns}"
    turn = await status.pressed(press, User(1, "Anna", None, "trainer", "en"), State(), content)
    head, *names, more = turn.replies[0].text.split("\n")
    assert head == text("missed_people", "en", count=510)
    assert [name.partition(" ")[0] for name in names] == [f"P{number}" for number in range(1000, 1035)]
    assert more == text("missed_more", "en", count=475)
