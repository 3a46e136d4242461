"""Who can repair a channel is informed that it has stopped: once for each stop, over another channel (W-34)."""

from core.deliveries.channels import Channels
from core.directory import Directory
from core.model.people import Group, User
from core.monitoring.halts import Halts, halt_of
from core.sentence import sentence
from tests.support.stack import TENANT, FakeCourier, Stack

REASON = sentence("halt_token_ended", answer="VK error 5")


async def school(stack: Stack) -> Directory:
    directory = Directory(stack.store)
    for user in (
        User(1, "Head", role="admin", locale="ru", contacts={"echo": ["head"], "sms": ["+79990000001"]}),
        User(2, "Deputy", role="admin", locale="en", contacts={"vk": ["200002"], "sms": ["+79990000002"]}),
        User(3, "Left", role="admin", contacts={"echo": ["left"]}, blocked=True),
        User(4, "Only VK", role="admin", contacts={"vk": ["200004"]}),
        User(5, "Teacher", role="trainer", contacts={"echo": ["teacher"]}),
    ):
        await directory.users.create(TENANT, user)
    await directory.groups.create(TENANT, Group("operators"), [5])
    return directory


async def informed(stack: Stack, *couriers: FakeCourier) -> list[tuple[str, str]]:
    """Return (address, beginning of the text) of all that was sent so far."""
    histories, _ = await stack.deliveries.list(TENANT)
    for history in histories:
        await stack.finished(history.key)
    return sorted((one.address, one.text.partition(":")[0]) for courier in couriers for one in courier.attempted)


async def halts(stack: Stack, operators: str = "") -> Halts:
    return Halts(stack.store, Channels(stack.store, ()), TENANT, operators)


async def test_administrators_are_informed_once_for_each_stop_over_another_channel(stack: Stack) -> None:
    await school(stack)
    echo, sms = FakeCourier("echo"), FakeCourier("sms")
    await stack.courier(echo)
    await stack.courier(sms)
    one, other = await halts(stack), await halts(stack)
    await one.note("vk", REASON)
    await other.note("vk", REASON)
    assert [address for address, _ in await informed(stack, echo, sms)] == ["+79990000002", "head"]
    texts = sorted(message.text for message in echo.attempted + sms.attempted)
    assert texts[0].startswith(f"VK: sending has stopped, messages wait. The reason: {REASON}.")
    russian = "ВКонтакте: отправка остановлена, сообщения ждут. Причина: VK error 5: токен больше не принимается."
    assert texts[1].startswith(russian)
    found = await halt_of(stack.store, "vk")
    assert found
    assert (found.reason, found.informed, found.is_over) == (str(REASON), 2, False)
    await one.works("vk")
    await one.note("vk", REASON)
    assert len(await informed(stack, echo, sms)) == 2, "it is restarted over and over, and stops each time"
    await one.works("vk")
    await one.note("vk", "another reason")
    assert len(await informed(stack, echo, sms)) == 4


async def test_with_operators_they_are_informed_in_place_of_administrators_also_of_the_account_of_a_tenant(
    stack: Stack,
) -> None:
    await school(stack)
    echo = FakeCourier("echo")
    await stack.courier(echo)
    await (await halts(stack, "operators")).note("vk", REASON, "another school")
    assert [address for address, _ in await informed(stack, echo)] == ["teacher"]
    found = await halt_of(stack.store, "vk", "another school")
    assert found
    assert found.informed == 1
    assert await halt_of(stack.store, "vk") is None
    await (await halts(stack, "operators")).note("echo", REASON)
    alone = await halt_of(stack.store, "echo")
    assert alone
    assert alone.informed == 0, "nobody is informed over the channel that has stopped"
