"""The VK courier over HTTP, against the sandbox."""

import random
import traceback
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cli.processes.embedded_valkey import free_port
from couriers.sending import (
    Courier,
    Deferred,
    Halted,
    Message,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    SetupError,
    Split,
    Unknown,
)
from couriers.vk import courier as vk
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from sandbox.vk import VkServer
from tests.couriers.contract import UNUSUAL_TEXTS, OutageContract, Provider, message, running, send_one

MAGIC_ADDRESSES = {(fault.name, fault.value): address for address, fault in MAGIC_RECIPIENTS["vk"].items()}
TOKEN = "vk1.a.sandbox"


class VkProvider(Provider):
    module = vk
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.token, self.port, self.timeout = TOKEN, free_port(), timedelta(seconds=30)

    def settings(self) -> vk.Settings:
        return vk.Settings(self.token, self.server.url, timeout=self.timeout)

    def address(self, number: int) -> str:
        return str(200_001 + number)

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("vk", address)]

    async def start(self) -> None:
        self.server = VkServer(self.state, port=self.port, token=TOKEN)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()

    def inject_fault(self, name: str, value: int | None = None, *, address: str = "*", method: str = "*") -> None:
        self.state.add_rule(Rule("vk", Fault(name, value), address=address, method=method, times=1))

    def messages(self, count: int, text: str = "hello") -> list[Message]:
        """Return one message for each of `count` recipients of one delivery."""
        return [message(self.address(number), text, recipient=str(number)) for number in range(count)]

    def copies(self, messages: list[Message]) -> set[int]:
        """Return the numbers of copies that the recipients received."""
        return {len(self.received(each.address)) for each in messages}


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[VkProvider]:
    async with running(VkProvider(tmp_path)) as opened:
        yield opened


class TestVk(OutageContract):
    @pytest.mark.parametrize("text", UNUSUAL_TEXTS)
    async def test_unusual_text_is_received_unchanged(self, provider: Provider, text: str) -> None:
        await super().test_unusual_text_is_received_unchanged(provider, text)

    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        await super().test_the_longest_text_is_received_unchanged(provider)

    async def test_a_repeat_with_the_same_seed_is_received_once_if_the_provider_remembers(
        self, provider: Provider
    ) -> None:
        await super().test_a_repeat_with_the_same_seed_is_received_once_if_the_provider_remembers(provider)

    async def test_what_the_channel_shows_is_sent_and_no_tag_is_seen(self, provider: Provider) -> None:
        await super().test_what_the_channel_shows_is_sent_and_no_tag_is_seen(provider)

    async def test_a_missing_file_is_recorded_and_the_text_is_sent(self, provider: Provider, tmp_path: Path) -> None:
        await super().test_a_missing_file_is_recorded_and_the_text_is_sent(provider, tmp_path)


async def test_2500_recipients_are_one_http_call(provider: VkProvider) -> None:
    courier = await provider.open()
    before = provider.state.counter("vk", "http")
    outcomes = await courier.attempt(provider.messages(2500))
    assert courier.batch == 2500
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert provider.state.counter("vk", "http") - before == 1
    references = [str(outcome.number) for outcome in outcomes if isinstance(outcome, Sent)]
    assert references == [provider.state.inbox("vk", each.address)[0].reference for each in provider.messages(2500)]


# failures

AMBIGUOUS = ["bad_gateway", "not_json", "stored_then_error", "disconnect_before", "disconnect_after", "timeout"]


@pytest.mark.parametrize("fault", AMBIGUOUS)
async def test_a_lost_answer_is_unknown_and_after_a_repeat_in_other_groups_there_is_one_copy(
    provider: VkProvider, fault: str
) -> None:
    provider.timeout = timedelta(seconds=1) if fault == "timeout" else provider.timeout
    courier = await provider.open()
    messages = provider.messages(250)
    provider.inject_fault(fault)
    assert all(isinstance(outcome, Unknown) for outcome in await courier.attempt(messages))
    random.Random(1).shuffle(messages)
    for part in (messages[:7], messages[7:120], messages[120:]):
        assert all(isinstance(outcome, Sent) for outcome in await courier.attempt(part))
    assert provider.copies(messages) == {1}


async def test_a_request_whose_answer_is_not_json_is_not_repeated(provider: VkProvider) -> None:
    courier = await provider.open()
    before = provider.state.counter("vk", "http")
    provider.state.add_rule(Rule("vk", Fault("not_json")))
    assert isinstance(await send_one(courier, provider.address(1)), Unknown)
    assert provider.state.counter("vk", "http") - before == 1


async def test_an_error_of_one_peer_does_not_affect_the_others(provider: VkProvider) -> None:
    courier = await provider.open()
    messages = provider.messages(20)
    wrong = [message(MAGIC_ADDRESSES["error", code], recipient=str(code)) for code in (901, 900, 914, 9, 10)]
    outcomes = await courier.attempt([*wrong[:2], *messages, *wrong[2:]])
    assert [type(outcome) for outcome in outcomes] == [
        Rejected, Rejected, *[Sent] * 20, Rejected, Deferred, Unknown,
    ]  # fmt: skip
    assert provider.copies(messages) == {1}


async def attempt_with_splits(courier: Courier, messages: list[Message]) -> dict[str, Outcome]:
    """Attempt as the runtime does: the halves of a batch that must be split are attempted separately."""
    outcomes = dict(zip((each.address for each in messages), await courier.attempt(messages), strict=True))
    refused = [each for each in messages if isinstance(outcomes[each.address], Split)]
    if len(refused) == 1:
        return outcomes | {refused[0].address: outcomes[refused[0].address]}
    middle = len(refused) // 2
    for half in (refused[:middle], refused[middle:]):
        if half:
            outcomes |= await attempt_with_splits(courier, half)
    return outcomes


@pytest.mark.parametrize("poison", [("peer_poison", None), ("call_error", 100), ("request_error", 12)])
async def test_a_batch_with_one_bad_id_reaches_all_others_once(
    provider: VkProvider, poison: tuple[str, int | None]
) -> None:
    courier = await provider.open()
    messages = provider.messages(330)
    bad = message(MAGIC_ADDRESSES[poison], recipient="bad")
    outcomes = await attempt_with_splits(courier, [*messages[:150], bad, *messages[150:]])
    assert not isinstance(outcomes.pop(bad.address), Sent | Split)
    assert all(isinstance(outcome, Sent) for outcome in outcomes.values())
    assert provider.copies(messages) == {1}
    assert provider.received(bad.address) == []


async def test_a_failed_call_without_an_error_entry_is_unknown_and_the_others_are_sent(provider: VkProvider) -> None:
    courier = await provider.open()
    messages = provider.messages(200)
    provider.inject_fault("execute_errors_mismatch", address=messages[5].address)
    outcomes = await courier.attempt(messages)
    assert {type(outcome) for outcome in outcomes[:100]} == {Unknown}
    assert {type(outcome) for outcome in outcomes[100:]} == {Sent}
    assert all(isinstance(outcome, Sent) for outcome in await courier.attempt(messages))
    assert provider.copies(messages) == {1}


async def test_too_many_requests_throttle_the_account_for_a_second(provider: VkProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("too_fast")
    outcome = await send_one(courier, provider.address(1))
    assert outcome == Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.ACCOUNT, "VK error 6")


@pytest.mark.parametrize("code", [14, 17, 3300])
async def test_a_captcha_defers_the_account(provider: VkProvider, code: int) -> None:
    courier = await provider.open()
    outcome = await send_one(courier, MAGIC_ADDRESSES["request_error", code])
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope) == (Reason.ACCOUNT_STOPPED, Scope.ACCOUNT)


@pytest.mark.parametrize("code", [5, 27, 28])
async def test_a_refused_token_halts(provider: VkProvider, code: int) -> None:
    assert isinstance(await send_one(await provider.open(), MAGIC_ADDRESSES["request_error", code]), Halted)


# more than one request can carry


async def test_more_texts_than_calls_are_split_without_a_request(provider: VkProvider) -> None:
    courier = await provider.open()
    messages = [message(provider.address(number), f"text {number}") for number in range(26)]
    before = provider.state.counter("vk", "http")
    assert all(isinstance(outcome, Split) for outcome in await courier.attempt(messages))
    assert provider.state.counter("vk", "http") == before
    assert all(isinstance(outcome, Sent) for outcome in (await attempt_with_splits(courier, messages)).values())


async def test_code_that_is_too_large_is_split_without_a_request(provider: VkProvider) -> None:
    courier = await provider.open()
    messages = provider.messages(2500, "😀" * 4096)
    before = provider.state.counter("vk", "http")
    assert all(isinstance(outcome, Split) for outcome in await courier.attempt(messages))
    assert provider.state.counter("vk", "http") == before
    assert all(isinstance(outcome, Sent) for outcome in (await attempt_with_splits(courier, messages)).values())


# opening


async def test_a_refused_token_is_a_setup_error_that_does_not_show_it(provider: VkProvider) -> None:
    provider.token = "vk1.a.another"
    with pytest.raises(SetupError, match="ADA_VK_TOKEN") as error:
        await provider.open()
    assert provider.token not in str(error.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/method/", "nonsense", "http://[/"])
async def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_token(url: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_VK_API_URL") as error:
        await vk.open(vk.Settings(TOKEN, url), tmp_path)
    assert TOKEN not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    ("code", "remedy"), [(6, "tries again"), (9, "tries again"), (10, "tries again"), (14, "browser")]
)
async def test_a_sign_in_refused_for_a_while_does_not_blame_the_token(
    provider: VkProvider, code: int, remedy: str
) -> None:
    provider.inject_fault("request_error", code, method="groups.getById")
    with pytest.raises(SetupError, match=f"error {code}") as error:
        await provider.open()
    assert remedy in str(error.value)
    assert "ADA_VK_TOKEN" not in str(error.value)


async def test_a_token_of_no_community_is_a_setup_error(provider: VkProvider) -> None:
    provider.inject_fault("request_error", 27, method="groups.getById")
    with pytest.raises(SetupError, match="error 27"):
        await provider.open()


async def test_the_account_is_the_community(provider: VkProvider) -> None:
    assert (await provider.open()).account == "club1"
