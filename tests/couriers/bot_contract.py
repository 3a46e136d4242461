"""The contract of couriers that send as a bot over HTTP: MAX, and Telegram's Bot API. See `tests.couriers.contract`."""

import logging
import traceback
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cli.processes.embedded_valkey import free_port
from couriers.sending import Deferred, Halted, Partly, Reason, Rejected, Scope, Sent, SetupError, Unknown
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from tests.couriers.contract import OutageContract, Provider, send_one

LOST_ANSWERS = [
    *(("server_error", 0), ("bad_gateway", 0), ("not_json", 0), ("timeout", 0), ("disconnect_before", 0)),
    *(("stored_then_error", 1), ("stored_then_bad_gateway", 1), ("stored_then_not_json", 1)),
    *(("stored_then_silence", 1), ("disconnect_after", 1)),
]
"""Fault → how many copies the recipient gets."""


class BotProvider(Provider):
    """The sandbox of one bot. `requests`: how many messages it was asked to send."""

    channel: str
    server_type: type[Any]
    first_address: int

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.token, self.port, self.timeout = self.secrets[0], free_port(), timedelta(seconds=30)
        self.magic = {fault.name: address for address, fault in MAGIC_RECIPIENTS[self.channel].items()}

    def settings(self) -> Any:
        return self.module.Settings(self.token, f"http://127.0.0.1:{self.port}", timeout=self.timeout)

    def address(self, number: int) -> str:
        return str(self.first_address + number)

    def received(self, address: str) -> list[str]:
        """A text received in parts has several messages within one attempt: the tests send it alone."""
        texts = [received.text for received in self.state.inbox(self.channel, address)]
        return ["".join(texts)] if any(len(text) > 1000 for text in texts) else texts

    async def start(self) -> None:
        self.server = self.server_type(self.state, port=self.port, token=self.secrets[0])
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()

    def inject_fault(
        self, name: str, value: int | None = None, *, address: str = "*", method: str = "sendMessage", times: int = 1
    ) -> None:
        self.state.add_rule(Rule(self.channel, Fault(name, value), address, method, times=times))

    @property
    def requests(self) -> int:
        return self.state.counter(self.channel, "sendMessage")


class BotContract(OutageContract):
    """`malformed`: addresses. `refused`: fault → reason. `scope`: of the wait after too many calls. `settings`: of the
    token and of the API.
    """

    malformed: Sequence[str]
    refused: ClassVar[Mapping[str, Reason]]
    longest: int
    scope: Scope
    settings: tuple[str, str]
    wrong_tokens: Sequence[str] = ("another",)

    async def test_what_is_no_address_is_refused_without_a_request(self, provider: BotProvider) -> None:
        courier = await provider.open()
        outcomes = [await send_one(courier, address) for address in self.malformed]
        assert outcomes == [Rejected(Reason.RECIPIENT_UNREACHABLE, outcomes[0].detail)] * len(self.malformed)
        assert provider.requests == 0

    async def test_a_refused_message_is_final_and_the_others_are_sent(self, provider: BotProvider) -> None:
        courier = await provider.open()
        outcomes = {fault: await send_one(courier, provider.magic[fault]) for fault in self.refused}
        assert {type(outcome) for outcome in outcomes.values()} == {Rejected}
        assert {fault: outcome.reason for fault, outcome in outcomes.items()} == self.refused
        assert isinstance(await send_one(courier, provider.address(1)), Sent)

    @pytest.mark.parametrize(("fault", "copies"), LOST_ANSWERS)
    async def test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(
        self, provider: BotProvider, fault: str, copies: int
    ) -> None:
        provider.timeout = timedelta(seconds=1) if fault in ("timeout", "stored_then_silence") else provider.timeout
        courier = await provider.open()
        assert isinstance(await send_one(courier, provider.magic[fault]), Unknown)
        assert provider.requests == 1
        assert len(provider.received(provider.magic[fault])) == copies

    async def test_a_later_part_that_is_refused_shows_what_arrived(self, provider: BotProvider) -> None:
        courier = await provider.open()
        provider.inject_fault("rate_limit", 1, address=provider.address(1), times=2)
        outcome = await send_one(courier, provider.address(1), "x" * self.longest + "y")
        (first,) = provider.state.inbox(provider.channel, provider.address(1))
        wait = Deferred(Reason.THROTTLED, timedelta(seconds=1), self.scope, "429")
        assert outcome == Partly(wait, first.reference)

    async def test_a_withdrawn_token_halts_the_courier(self, provider: BotProvider) -> None:
        outcome = await send_one(await provider.open(), provider.magic["unauthorized"])
        assert isinstance(outcome, Halted)
        assert self.settings[0] in outcome.detail

    async def test_a_refused_token_is_a_setup_error_that_does_not_show_it(self, provider: BotProvider) -> None:
        for token in self.wrong_tokens:
            provider.token = token
            with pytest.raises(SetupError, match=self.settings[0]) as error:
                await provider.open()
            assert token not in "".join(traceback.format_exception(error.value))

    async def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_token(self, provider: BotProvider) -> None:
        module, (token, *_) = provider.module, provider.secrets
        for url in ("http://127.0.0.1:1", "nonsense", "http://[/", "ftp://host"):
            with pytest.raises(SetupError, match=self.settings[1]) as error:
                await module.open(module.Settings(token, url), provider.directory)
            assert token not in "".join(traceback.format_exception(error.value))

    async def test_the_token_is_in_no_log_line_and_no_outcome(
        self, provider: BotProvider, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        provider.timeout = timedelta(seconds=1)
        courier = await provider.open()
        shown = [str(await send_one(courier, address)) for address in provider.magic.values()]
        await provider.stop()
        shown.append(str(await send_one(courier, provider.address(1))))
        shown += [record.getMessage() + str(record.exc_info) for record in caplog.records]
        shown.append(repr(provider.settings()))
        secret = provider.secrets[0].rpartition(":")[2]
        assert [line for line in shown if secret in line] == []
