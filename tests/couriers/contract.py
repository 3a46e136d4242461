"""The contract of every courier, as a test class to inherit from.

Not collected by itself. The tests of a courier define a fixture `provider` (a `Provider`) and `class TestX(Contract)`.
"""

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from couriers.channel import channels
from couriers.sending import (
    NEVER,
    Announces,
    Attachment,
    AttachmentType,
    Button,
    Content,
    Courier,
    Deferred,
    Feature,
    Message,
    NotWanted,
    ParseMode,
    Reason,
    Rejected,
    Scope,
    Sent,
    Unknown,
)
from couriers.sending.interface import WritesAsText
from couriers.sending.presentation import present
from tests.support.waiting import until

UNUSUAL_TEXTS = [
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


P = TypeVar("P", bound="Provider")


class Provider(ABC):
    """A simulated provider of one channel, and the couriers that a test opened on it."""

    module: ModuleType  # of the courier
    secrets: tuple[str, ...] = ()  # values of the settings that must not be shown

    @abstractmethod
    def settings(self) -> Any:
        """Return the courier's settings for this provider."""

    @abstractmethod
    def address(self, number: int) -> str:
        """Return the n-th valid address."""

    @abstractmethod
    def received(self, address: str) -> list[str]:
        """Return the texts received there, in order; a text received in parts is joined."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop: connections are refused from now on."""

    @abstractmethod
    async def start(self) -> None:
        """Start again on the same port."""

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


async def send_one(courier: Courier, address: str, text: str = "hello", seed: str = "delivery") -> Any:
    return (await courier.attempt([message(address, text, seed)]))[0]


@asynccontextmanager
async def running(provider: P) -> AsyncIterator[P]:
    await provider.start()
    yield provider
    await provider.close()
    await provider.stop()


def content(photo: Path) -> Content:
    """HTML, buttons below the message, a photo."""
    buttons = ((Button("Да", "yes"), Button("Нет", "no")), (Button("Сайт", url="https://example.org"),))
    return Content(ParseMode.HTML, buttons, attachments=(Attachment(AttachmentType.PHOTO, str(photo)),))


def files(directory: Path, *names: str) -> list[Attachment]:
    """Write a file for each name; the type of each is the name without its number and its end."""
    found = []
    for name in names:
        path = directory / name
        path.write_bytes(name.encode())
        found.append(Attachment(AttachmentType(path.stem.rstrip("0123456789")), str(path)))
    return found


def as_shown(courier: Courier, given: Message, text: str) -> Message:
    """The message as the runtime gives it to this courier."""
    as_text = courier.as_text(given.content) if given.content and isinstance(courier, WritesAsText) else ()
    presented = present(text, given.content, courier.shows, as_text)
    return dataclasses.replace(given, text=presented.text, content=presented.content)


async def send(courier: Courier, messages: list[Message]) -> list[Any]:
    """Send in concurrent attempts of `batch` messages, as the runtime does, and return all outcomes in order."""
    batches = [messages[start : start + courier.batch] for start in range(0, len(messages), courier.batch)]
    outcomes = await asyncio.gather(*(courier.attempt(batch) for batch in batches))
    return [outcome for batch in outcomes for outcome in batch]


class Contract:
    """The tests. `provider` is the fixture of the channel."""

    unaddressable = "nobody at all"  # an address that the courier rejects without a request; "" if there is none

    async def test_each_message_gets_one_outcome_in_order(self, provider: Provider) -> None:
        courier = await provider.open()
        wanted = [provider.address(number) if number % 3 else self.unaddressable for number in range(12)]
        batches = [wanted[start : start + courier.batch] for start in range(0, len(wanted), courier.batch)]
        for addresses in batches:
            outcomes = await courier.attempt([message(address, recipient=address) for address in addresses])
            assert [type(outcome) for outcome in outcomes] == [
                Rejected if address == self.unaddressable else Sent for address in addresses
            ]

    async def test_an_attempt_without_messages_has_no_outcomes(self, provider: Provider) -> None:
        assert list(await (await provider.open()).attempt([])) == []

    @pytest.mark.parametrize("text", UNUSUAL_TEXTS)
    async def test_unusual_text_is_received_unchanged(self, provider: Provider, text: str) -> None:
        outcomes = await (await provider.open()).attempt([message(provider.address(1), text)])
        assert isinstance(outcomes[0], Sent)
        assert provider.received(provider.address(1)) == [text]

    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        text = (
            "".join(chr(0x410 + number % 64) + (" " if number % 9 == 0 else "") for number in range(5000))[:4095] + "я"
        )
        outcomes = await (await provider.open()).attempt([message(provider.address(1), text)])
        assert isinstance(outcomes[0], Sent)
        assert provider.received(provider.address(1)) == [text]

    async def test_a_repeat_with_the_same_seed_is_received_once_if_the_provider_remembers(
        self, provider: Provider
    ) -> None:
        first, second = await provider.open(), await provider.open()
        references: list[Any] = []
        for courier in (first, first, second):
            references += await courier.attempt([message(provider.address(1))])
        copies = 3 if first.remembers == NEVER else 1
        assert provider.received(provider.address(1)) == ["hello"] * copies
        known = {outcome.reference for outcome in references if outcome.reference}
        assert len(known) in (0, 1, copies)  # none, derived from the random id, or one for each copy

    async def test_another_seed_is_another_message(self, provider: Provider) -> None:
        courier = await provider.open()
        for seed in ("delivery", "delivery, retried"):
            await courier.attempt([message(provider.address(1), seed=seed)])
        assert provider.received(provider.address(1)) == ["hello"] * 2

    async def test_concurrent_attempts_do_not_mix_up_messages(self, provider: Provider) -> None:
        courier = await provider.open()
        addresses = [provider.address(number) for number in range(64)]
        outcomes = await asyncio.gather(
            *(courier.attempt([message(address, f"for {address}", recipient=address)]) for address in addresses)
        )
        assert all(isinstance(outcome, Sent) for (outcome,) in outcomes)
        assert [provider.received(address) for address in addresses] == [[f"for {address}"] for address in addresses]

    async def test_what_the_channel_shows_is_sent_and_no_tag_is_seen(self, provider: Provider) -> None:
        courier = await provider.open()
        photo = provider.directory / "menu.png"
        photo.parent.mkdir(parents=True, exist_ok=True)
        photo.write_bytes(b"a photo")
        given = dataclasses.replace(message(provider.address(1)), content=content(photo))
        (outcome,) = await courier.attempt([as_shown(courier, given, "<b>hello</b> &amp; welcome")])
        assert isinstance(outcome, Sent)
        assert list(outcome.not_shown) == []
        shown = "\n".join(provider.received(provider.address(1)))
        assert "hello & welcome" in shown
        assert "<" not in shown

    async def test_a_missing_file_is_recorded_and_the_text_is_sent(self, provider: Provider, tmp_path: Path) -> None:
        courier = await provider.open()
        given = dataclasses.replace(message(provider.address(1)), content=content(tmp_path / "missing.png"))
        (outcome,) = await courier.attempt([as_shown(courier, given, "hello")])
        assert isinstance(outcome, Sent)
        assert list(outcome.not_shown) == (["photo missing.png"] if Feature.PHOTO in courier.shows else [])
        assert any("hello" in text for text in provider.received(provider.address(1)))

    async def test_what_is_not_wanted_when_it_is_announced_is_not_sent(self, provider: Provider) -> None:
        """A courier that announces does so before the message leaves, and goes on with its connections afterwards."""
        courier = await provider.open()
        announced: list[str] = []

        async def refuse() -> None:
            announced.append("refused")
            raise NotWanted

        async def accept() -> None:
            announced.append("accepted")
            assert provider.received(provider.address(1)) == []

        if not isinstance(courier, Announces):
            return
        given = message(provider.address(1))
        for _ in range(3):
            with pytest.raises(NotWanted):
                await courier.attempt([dataclasses.replace(given, announce=refuse)])
        assert provider.received(provider.address(1)) == []
        (outcome,) = await courier.attempt([dataclasses.replace(given, announce=accept)])
        assert isinstance(outcome, Sent)
        assert announced == ["refused"] * 3 + ["accepted"]
        assert provider.received(provider.address(1)) == ["hello"]

    async def test_close_can_be_called_twice(self, provider: Provider) -> None:
        courier = await provider.open()
        await courier.attempt([message(provider.address(1))])
        await courier.close()
        await courier.close()

    async def test_the_account_is_the_same_in_every_process_and_shows_no_secret(self, provider: Provider) -> None:
        first, second = await provider.open(), await provider.open()
        assert first.account == second.account != ""
        assert not any(secret in first.account for secret in provider.secrets)

    async def test_the_module_implements_the_interface(self, provider: Provider) -> None:
        courier = await provider.open()
        assert channels()[courier.channel].courier == provider.module.__name__
        assert courier.parcel % courier.batch == 0
        settings = provider.settings()
        assert isinstance(settings, provider.module.Settings)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, dataclasses.fields(settings)[0].name, None)


class OutageContract(Contract):
    """For channels whose provider is reached over a network."""

    async def test_an_outage_uses_up_no_attempts_and_the_courier_recovers(self, provider: Provider) -> None:
        courier = await provider.open()
        await provider.stop()

        async def outage_is_known() -> bool:
            """An attempt that is in progress when the connection ends may still be unknown."""
            return not isinstance((await courier.attempt([message(provider.address(1))]))[0], Unknown)

        known: bool = await until(outage_is_known)
        assert known
        for _ in range(3):
            outcome = (await courier.attempt([message(provider.address(1))]))[0]
            assert isinstance(outcome, Deferred)
            assert (outcome.reason, outcome.scope) == (Reason.PROVIDER_DOWN, Scope.ACCOUNT)
            assert outcome.after
        await provider.start()
        assert isinstance((await courier.attempt([message(provider.address(1))]))[0], Sent)
        assert provider.received(provider.address(1)) == ["hello"]
