"""What every courier keeps: a class to inherit from, with a fixture `house` that plays the channel's provider.

Not collected by itself. A new courier gets its own `test_<channel>.py` with a house and `class TestX(Contract)`.
"""

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.courier.interface import NEVER, Courier, Deferred, Message, Rejected, Scope, Sent, Unknown
from core.model.states import Reason
from tests.support.waiting import until

ODD_TEXTS = [
    "Моей пары сегодня не будет",
    "quotes \" ' « », braces {} {{}} [], back\\slash, %d %% %s, a+b&c=d#e?f",
    '"});return API.messages.send({"peer_id":1});//',
    "lines\nmore lines\n\nand\ttabs",
    "<b>no</b> **markup** __here__ [link](https://example.org) @somebody #tag",
    "separators \u2028 and \u2029 of lines, no\u00a0break",
    "👩‍👩‍👧‍👦 🇷🇺 👍🏽 é ё й\u0306 \U0001f600",
    "№ “–” … € ^{}\\[~]|",
    "' OR 1=1; DROP TABLE users; -- ${jndi:ldap://x} {{7*7}} `id` $(id)",
]


class House(ABC):
    """One provider, played, and couriers that send to it."""

    module: ModuleType  # the courier's
    secrets: tuple[str, ...] = ()  # of its settings

    @abstractmethod
    def settings(self) -> Any:
        """The courier's settings for this house."""

    @abstractmethod
    def address(self, number: int) -> str:
        """The n-th good address."""

    @abstractmethod
    def received(self, address: str) -> list[str]:
        """The texts that arrived there, in order; what arrived in parts is joined."""

    @abstractmethod
    async def stop(self) -> None:
        """The provider goes away."""

    @abstractmethod
    async def start(self) -> None:
        """It comes back to the same place."""

    directory: Path

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.opened: list[Courier] = []

    async def open(self) -> Courier:
        courier: Courier = await self.module.open(self.settings(), self.directory)
        self.opened.append(courier)
        return courier

    async def close(self) -> None:
        for courier in self.opened:
            await courier.close()


def message(
    address: str, text: str = "hello", seed: str = "delivery", recipient: str = "1", report: str = ""
) -> Message:
    return Message(address, text, seed, recipient, report)


async def send(courier: Courier, messages: list[Message]) -> list[Any]:
    """The outcomes of all messages, in attempts as large as the courier takes, all at once as the runtime does."""
    batches = [messages[start : start + courier.batch] for start in range(0, len(messages), courier.batch)]
    outcomes = await asyncio.gather(*(courier.attempt(batch) for batch in batches))
    return [outcome for batch in outcomes for outcome in batch]


class Contract:
    """The tests. `house` is the fixture of the channel."""

    unaddressable = "nobody at all"  # is refused without asking anybody; "" where the channel refuses nothing

    async def test_there_are_as_many_outcomes_as_messages_in_their_order(self, house: House) -> None:
        courier = await house.open()
        wanted = [house.address(number) if number % 3 else self.unaddressable for number in range(12)]
        batches = [wanted[start : start + courier.batch] for start in range(0, len(wanted), courier.batch)]
        for addresses in batches:
            outcomes = await courier.attempt([message(address, recipient=address) for address in addresses])
            assert [type(outcome) for outcome in outcomes] == [
                Rejected if address == self.unaddressable else Sent for address in addresses
            ]

    async def test_an_attempt_at_nothing_has_no_outcomes(self, house: House) -> None:
        assert list(await (await house.open()).attempt([])) == []

    @pytest.mark.row("D-25")
    @pytest.mark.parametrize("text", ODD_TEXTS)
    async def test_odd_text_arrives_letter_for_letter(self, house: House, text: str) -> None:
        outcomes = await (await house.open()).attempt([message(house.address(1), text)])
        assert isinstance(outcomes[0], Sent)
        assert house.received(house.address(1)) == [text]

    @pytest.mark.row("D-25", "D-26")
    async def test_the_longest_text_arrives_letter_for_letter(self, house: House) -> None:
        text = (
            "".join(chr(0x410 + number % 64) + (" " if number % 9 == 0 else "") for number in range(5000))[:4095] + "я"
        )
        outcomes = await (await house.open()).attempt([message(house.address(1), text)])
        assert isinstance(outcomes[0], Sent)
        assert house.received(house.address(1)) == [text]

    @pytest.mark.row("D-19", "D-21")
    async def test_a_repeat_with_the_same_seed_is_the_same_message_where_the_provider_remembers(
        self, house: House
    ) -> None:
        first, second = await house.open(), await house.open()
        references: list[Any] = []
        for courier in (first, first, second):
            references += await courier.attempt([message(house.address(1))])
        copies = 3 if first.remembers == NEVER else 1
        assert house.received(house.address(1)) == ["hello"] * copies
        assert len(set(references)) == 1

    async def test_another_seed_is_another_message(self, house: House) -> None:
        courier = await house.open()
        for seed in ("delivery", "delivery, retried"):
            await courier.attempt([message(house.address(1), seed=seed)])
        assert house.received(house.address(1)) == ["hello"] * 2

    @pytest.mark.row("D-34")
    async def test_many_attempts_at_once_do_not_disturb_each_other(self, house: House) -> None:
        courier = await house.open()
        addresses = [house.address(number) for number in range(64)]
        outcomes = await asyncio.gather(
            *(courier.attempt([message(address, f"for {address}", recipient=address)]) for address in addresses)
        )
        assert all(isinstance(outcome, Sent) for (outcome,) in outcomes)
        assert [house.received(address) for address in addresses] == [[f"for {address}"] for address in addresses]

    async def test_close_may_be_repeated(self, house: House) -> None:
        courier = await house.open()
        await courier.attempt([message(house.address(1))])
        await courier.close()
        await courier.close()

    async def test_the_account_is_no_secret_and_the_same_for_every_process(self, house: House) -> None:
        first, second = await house.open(), await house.open()
        assert first.account == second.account != ""
        assert not any(secret in first.account for secret in house.secrets)

    async def test_the_module_keeps_to_the_port(self, house: House) -> None:
        courier = await house.open()
        assert courier.channel == house.module.__name__.rsplit(".", 1)[-1]
        assert courier.parcel % courier.batch == 0
        settings = house.settings()
        assert isinstance(settings, house.module.Settings)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, dataclasses.fields(settings)[0].name, None)


class OutageContract(Contract):
    """For channels whose provider is somewhere else."""

    @pytest.mark.row("D-18", "D-20")
    async def test_an_outage_takes_nobodys_attempts_and_the_same_courier_goes_on_after_it(self, house: House) -> None:
        courier = await house.open()
        await house.stop()

        async def noticed() -> bool:
            """What is on its way when a connection ends may still be unknown."""
            return not isinstance((await courier.attempt([message(house.address(1))]))[0], Unknown)

        known: bool = await until(noticed)
        assert known
        for _ in range(3):
            outcome = (await courier.attempt([message(house.address(1))]))[0]
            assert isinstance(outcome, Deferred)
            assert (outcome.reason, outcome.scope) == (Reason.PROVIDER_DOWN, Scope.ACCOUNT)
            assert outcome.after
        await house.start()
        assert isinstance((await courier.attempt([message(house.address(1))]))[0], Sent)
        assert house.received(house.address(1)) == ["hello"]
