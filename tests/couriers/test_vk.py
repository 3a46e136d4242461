"""The VK courier over HTTP, posting real VKScript."""

import random
import traceback
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.courier.interface import Courier, Deferred, Halted, Message, Outcome, Rejected, Scope, Sent, Split, Unknown
from core.errors import SetupError
from core.model.states import Reason
from couriers import vk
from sandbox.magic_recipients import MAGIC
from sandbox.state import Fault, Rule, World
from sandbox.vk import VkServer
from tests.couriers.contract import House, OutageContract, message

MAGIC_OF = {(fault.name, fault.value): address for address, fault in MAGIC["vk"].items()}
TOKEN = "vk1.a.sandbox"


class VkHouse(House):
    module = vk
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.world = World()
        self.token, self.port, self.timeout = TOKEN, 0, timedelta(seconds=30)

    def settings(self) -> vk.Settings:
        return vk.Settings(self.token, self.server.url, timeout=self.timeout)

    def address(self, number: int) -> str:
        return str(200_001 + number)

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.world.inbox("vk", address)]

    async def start(self) -> None:
        self.server = VkServer(self.world, port=self.port, token=TOKEN)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()

    def order(self, name: str, value: int | None = None, *, address: str = "*", method: str = "*") -> None:
        self.world.add_rule(Rule("vk", Fault(name, value), address=address, method=method, times=1))

    def people(self, count: int, text: str = "hello") -> list[Message]:
        """One message each, of one delivery."""
        return [message(self.address(number), text, recipient=str(number)) for number in range(count)]

    def copies(self, messages: list[Message]) -> set[int]:
        """How many copies there are of each."""
        return {len(self.received(each.address)) for each in messages}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[VkHouse]:
    played = VkHouse(tmp_path)
    await played.start()
    yield played
    await played.close()
    await played.stop()


async def one(courier: Courier, address: str) -> Any:
    return (await courier.attempt([message(address)]))[0]


class TestVk(OutageContract):
    pass


@pytest.mark.row("D-21", "D-33")
async def test_2500_recipients_are_one_http_call(house: VkHouse) -> None:
    courier = await house.open()
    before = house.world.counted("vk", "http")
    outcomes = await courier.attempt(house.people(2500))
    assert courier.batch == 2500
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert house.world.counted("vk", "http") - before == 1
    references = [outcome.reference for outcome in outcomes if isinstance(outcome, Sent)]
    assert references == [house.world.inbox("vk", each.address)[0].reference for each in house.people(2500)]


# failures

AMBIGUOUS = ["bad_gateway", "not_json", "stored_then_error", "disconnect_before", "disconnect_after", "timeout"]


@pytest.mark.row("D-21", "D-38")
@pytest.mark.parametrize("fault", AMBIGUOUS)
async def test_a_lost_answer_is_unknown_and_a_repeat_in_other_company_makes_it_one_copy(
    house: VkHouse, fault: str
) -> None:
    house.timeout = timedelta(seconds=1) if fault == "timeout" else house.timeout
    courier = await house.open()
    people = house.people(250)
    house.order(fault)
    assert all(isinstance(outcome, Unknown) for outcome in await courier.attempt(people))
    random.Random(1).shuffle(people)
    for part in (people[:7], people[7:120], people[120:]):
        assert all(isinstance(outcome, Sent) for outcome in await courier.attempt(part))
    assert house.copies(people) == {1}


@pytest.mark.row("D-21")
async def test_an_answer_that_is_no_json_is_asked_for_once(house: VkHouse) -> None:
    """vkbottle's own rescheduler repeats such a call without end."""
    courier = await house.open()
    before = house.world.counted("vk", "http")
    house.world.add_rule(Rule("vk", Fault("not_json")))
    assert isinstance(await one(courier, house.address(1)), Unknown)
    assert house.world.counted("vk", "http") - before == 1


async def test_errors_of_single_peers_are_theirs_alone(house: VkHouse) -> None:
    courier = await house.open()
    people = house.people(20)
    wrong = [message(MAGIC_OF["error", code], recipient=str(code)) for code in (901, 900, 914, 9, 10)]
    outcomes = await courier.attempt([*wrong[:2], *people, *wrong[2:]])
    assert [type(outcome) for outcome in outcomes] == [
        Rejected, Rejected, *[Sent] * 20, Rejected, Deferred, Unknown,
    ]  # fmt: skip
    assert house.copies(people) == {1}


async def bisected(courier: Courier, messages: list[Message]) -> dict[str, Outcome]:
    """What the runtime does with a batch that is refused as a whole: each half on its own."""
    outcomes = dict(zip((each.address for each in messages), await courier.attempt(messages), strict=True))
    refused = [each for each in messages if isinstance(outcomes[each.address], Split)]
    if len(refused) == 1:
        return outcomes | {refused[0].address: outcomes[refused[0].address]}
    middle = len(refused) // 2
    for half in (refused[:middle], refused[middle:]):
        if half:
            outcomes |= await bisected(courier, half)
    return outcomes


@pytest.mark.row("D-21", "D-20")
@pytest.mark.parametrize("poison", [("peer_poison", None), ("call_error", 100), ("request_error", 12)])
async def test_a_batch_with_one_bad_id_reaches_everybody_else_once(
    house: VkHouse, poison: tuple[str, int | None]
) -> None:
    courier = await house.open()
    people = house.people(330)
    bad = message(MAGIC_OF[poison], recipient="bad")
    outcomes = await bisected(courier, [*people[:150], bad, *people[150:]])
    assert not isinstance(outcomes.pop(bad.address), Sent | Split)
    assert all(isinstance(outcome, Sent) for outcome in outcomes.values())
    assert house.copies(people) == {1}
    assert house.received(bad.address) == []


async def test_a_call_whose_failure_is_not_listed_is_unknown_and_the_others_are_sent(house: VkHouse) -> None:
    courier = await house.open()
    people = house.people(200)
    house.order("execute_errors_mismatch", address=people[5].address)
    outcomes = await courier.attempt(people)
    assert {type(outcome) for outcome in outcomes[:100]} == {Unknown}
    assert {type(outcome) for outcome in outcomes[100:]} == {Sent}
    assert all(isinstance(outcome, Sent) for outcome in await courier.attempt(people))
    assert house.copies(people) == {1}


@pytest.mark.row("D-22")
async def test_too_fast_holds_up_the_account_for_a_second(house: VkHouse) -> None:
    courier = await house.open()
    house.order("too_fast")
    outcome = await one(courier, house.address(1))
    assert outcome == Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.ACCOUNT, "VK error 6")


@pytest.mark.parametrize("code", [14, 17, 3300])
async def test_a_captcha_leaves_the_tasks_waiting_for_a_person(house: VkHouse, code: int) -> None:
    courier = await house.open()
    outcome = await one(courier, MAGIC_OF["request_error", code])
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope) == (Reason.ACCOUNT_STOPPED, Scope.ACCOUNT)


@pytest.mark.parametrize("code", [5, 27, 28])
async def test_a_refused_token_halts(house: VkHouse, code: int) -> None:
    assert isinstance(await one(await house.open(), MAGIC_OF["request_error", code]), Halted)


# what one request cannot carry


async def test_more_texts_than_calls_are_halved_without_asking(house: VkHouse) -> None:
    courier = await house.open()
    messages = [message(house.address(number), f"text {number}") for number in range(26)]
    before = house.world.counted("vk", "http")
    assert all(isinstance(outcome, Split) for outcome in await courier.attempt(messages))
    assert house.world.counted("vk", "http") == before
    assert all(isinstance(outcome, Sent) for outcome in (await bisected(courier, messages)).values())


async def test_a_code_that_is_too_large_is_halved_without_asking(house: VkHouse) -> None:
    courier = await house.open()
    people = house.people(2500, "😀" * 4096)
    before = house.world.counted("vk", "http")
    assert all(isinstance(outcome, Split) for outcome in await courier.attempt(people))
    assert house.world.counted("vk", "http") == before
    assert all(isinstance(outcome, Sent) for outcome in (await bisected(courier, people)).values())


# opening


async def test_a_refused_token_is_told_without_showing_it(house: VkHouse) -> None:
    house.token = "vk1.a.another"
    with pytest.raises(SetupError, match="ADA_VK_TOKEN") as told:
        await house.open()
    assert house.token not in str(told.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/method/", "nonsense", "http://[/"])
async def test_a_wrong_address_is_told_and_no_trace_shows_the_token(url: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_VK_API_URL") as told:
        await vk.open(vk.Settings(TOKEN, url), tmp_path)
    assert TOKEN not in "".join(traceback.format_exception(told.value))


async def test_a_token_that_is_no_communitys_is_told(house: VkHouse) -> None:
    house.order("request_error", 27, method="groups.getById")
    with pytest.raises(SetupError, match="error 27"):
        await house.open()


async def test_the_account_is_the_community(house: VkHouse) -> None:
    assert (await house.open()).account == "club1"
