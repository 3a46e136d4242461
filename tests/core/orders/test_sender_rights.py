"""A message that waits is not sent if its sender may not write any more when it is due; administrators are told why."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from core.deliveries.channels import Channels
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.model.delivery import NewDelivery, Sender
from core.model.people import Group, User, UserChange
from core.model.states import Reason, Status
from core.monitoring.halts import Halts
from core.orders import Addressee, Caller, Order, Sending
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import until

TEACHER, CLASS = "t", "class"
SENT, TOMORROW = (Status.SENT, None), timedelta(days=1, minutes=1)
Change = Callable[[Stack, Directory], Awaitable[Any]]


async def block(_: Stack, directory: Directory) -> None:
    await directory.users.update(TENANT, TEACHER, UserChange(blocked=True))


async def delete(stack: Stack, directory: Directory) -> None:
    await directory.ownerships.disown(TENANT, TEACHER, "group", CLASS)
    await directory.users.delete(TENANT, TEACHER)
    await DepartedPeople(stack.store).note_deleted(TENANT, TEACHER)


async def lose_group(_: Stack, directory: Directory) -> None:
    await directory.ownerships.disown(TENANT, TEACHER, "group", CLASS)


async def change_nothing(_: Stack, directory: Directory) -> None:
    await directory.users.update(TENANT, TEACHER, UserChange(name="Anna Maria"))


async def block_and_unblock(stack: Stack, directory: Directory) -> None:
    await block(stack, directory)
    await directory.users.update(TENANT, TEACHER, UserChange(blocked=False))


@pytest.fixture
async def directory(stack: Stack) -> Directory:
    """A teacher with a class of one, and an administrator."""
    directory = Directory(stack.store)
    await directory.users.create(TENANT, User(TEACHER, "Anna", role="trainer"))
    await directory.users.create(TENANT, User("boss", "Olga", role="admin", locale="en", contacts={"echo": ["boss"]}))
    await directory.users.create(TENANT, User("p", "Pyotr", contacts={"echo": ["p"]}))
    await directory.groups.create(TENANT, Group(CLASS, "Class"))
    await directory.groups.add_members(TENANT, CLASS, ["p"])
    await directory.ownerships.own(TENANT, TEACHER, "group", CLASS)
    return directory


async def begin(stack: Stack) -> FakeCourier:
    """Start a courier that tells the administrators."""
    courier, channels = FakeCourier(), Channels(stack.store, ("echo",))
    halts = Halts(stack.store, channels, TENANT)
    await stack.courier(courier, on_refusal=halts.report_refusal)
    return courier


@pytest.mark.parametrize("named", [Addressee(group=CLASS), Addressee(id="p")], ids=["group", "person"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (block, Reason.SENDER_BLOCKED),
        (delete, Reason.SENDER_BLOCKED),
        (lose_group, Reason.SENDER_NOT_ALLOWED),
        (change_nothing, None),
        (block_and_unblock, None),
    ],
)
async def test_what_is_due_is_sent_if_the_sender_still_may(
    stack: Stack, directory: Directory, named: Addressee, change: Change, reason: Reason | None
) -> None:
    sending = Sending(stack.store, stack.deliveries, directory, clock=stack.now)
    (teacher,) = await directory.users.lookup(TENANT, [TEACHER])
    message = NewDelivery(
        TENANT, Sender(TEACHER), "Lesson at 5", [], ["echo"], deliver_at=stack.now() + timedelta(days=1)
    )
    accepted = await sending.send(Order(message, [named]), Caller(TENANT, person=teacher))
    courier = await begin(stack)
    await change(stack, directory)
    stack.advance_clock(TOMORROW)
    history = await stack.finished(accepted.key)
    (outcome,) = history.recipients[0].outcomes.values()
    assert (outcome.status, outcome.reason) == ((Status.FAILED, reason) if reason else SENT)
    if reason:
        await until(lambda: courier.addresses == ["boss"])
        assert "A message of Anna is not sent: the sender" in courier.attempted[0].text
    else:
        assert courier.addresses == ["p"]
