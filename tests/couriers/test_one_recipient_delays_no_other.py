"""No recipient holds up others (D-53): the real couriers in the runtime, the simulated providers over the wire.

The bad recipients are the magic ones: one for each answer to one recipient, at each step of the protocol. Nothing here
measures seconds. The others are as fast as without the bad ones because the account never waits, and because an attempt
for each of them is made once; silence is shown by a time limit that is far longer than the test.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.deliveries.histories.parcels import parcel_task
from core.errors import NotFound
from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey
from core.model.states import OPEN, REACHED, Status, TaskState
from core.redis.store import Argument, Store
from couriers.email import courier as email
from couriers.max import courier as max_courier
from couriers.sending import Courier
from couriers.sending.services import CourierOptions
from couriers.sms import courier as sms
from couriers.sms.profile import own_profiles
from couriers.telegram import sign_in as telegram
from couriers.telegram_bot import courier as telegram_bot
from couriers.vk import courier as vk
from sandbox.bot_api import BotApiServer
from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.max import MaxServer
from sandbox.sms import SmsServer
from sandbox.sms.providers import PASSWORD, USERNAME, SmsProvidersServer
from sandbox.state import Fault, Rule, SandboxState
from sandbox.vk import VkServer
from tests.couriers.telegram_provider import TelegramProvider
from tests.support.serving import serving
from tests.support.stack import FLOOR, Stack
from tests.support.waiting import until

QUICK = CourierOptions(
    lease=timedelta(days=30),
    max_sleep=FLOOR,
    backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 8),
)
"""The lease outlasts the hours that `ended_some_day` lets pass: a silent one whose lease ended would be claimed again,
with a bad one that is due, and the request for both would be as silent."""
IN_FEW_ATTEMPTS = replace(QUICK, backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 3))
LONG, SHORT = timedelta(minutes=10), timedelta(seconds=3)
OTHERS = 60
SILENT = frozenset({"timeout", "stored_then_silence", "rcpt_silence"})
NAMED_WAIT = frozenset({"slow_mode"})
"""The provider names how long this recipient must wait: it ends when the provider takes it, or when it expires."""
PAUSED_BY_TELETHON = frozenset({"server_error", "stored_then_error", "random_id_duplicate", "stored_then_refused"})
"""Telethon itself pauses 2 s after these, some times in each attempt; a minute later the lease would be over."""
OF_THE_ACCOUNT = {
    ("telegram", "flood_wait"),
    ("telegram-bot", "flood_wait"),
    ("max", "flood_wait"),
    ("max", "too_fast"),
    ("vk", "too_fast"),
    *(("vk", "request_error", code) for code in (5, 9, 14, 17, 27, 28, 29, 3300)),
    *(("sms", "busy", name) for name in ("exolve", "smsaero", "sms.ru", "twilio")),
}
"""Answers that concern the account for certain, by what the provider writes of them: docs/answers.md."""


class WatchedStore(Store):
    """`waits`: the scopes for which an account had to wait."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waits: list[Argument] = []

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        if name == "throttle" and not str(arguments[1]).startswith("chat:"):
            self.waits.append(arguments[1])
        return await super().run(name, shard, *arguments)


@dataclass
class Served:
    """One channel and its simulated provider. `open`: the courier, with this time limit of an answer."""

    channel: str
    state: SandboxState
    open: Callable[[timedelta], Any]
    address: Callable[[int], str]
    profile: str = ""

    @property
    def paused(self) -> frozenset[str]:
        return PAUSED_BY_TELETHON if self.channel == "telegram" else frozenset()

    def bad(self) -> dict[str, Fault]:
        """Return the magic recipients whose answer does not concern the account for certain."""
        return {
            address: fault
            for address, fault in MAGIC_RECIPIENTS[self.channel].items()
            if not FAULTS[self.channel][fault.name].account and not self._is_of_the_account(fault)
        }

    def _is_of_the_account(self, fault: Fault) -> bool:
        names = (self.channel, fault.name)
        return bool({names, (*names, fault.value), (*names, self.profile)} & OF_THE_ACCOUNT)


def numbered(first: int, prefix: str = "") -> Callable[[int], str]:
    return lambda number: f"{prefix}{first + number}"


@asynccontextmanager
async def serve_email(_: Path) -> AsyncIterator[Served]:
    state = SandboxState()
    async with serving(SmtpServer(state)) as server:

        async def open_courier(timeout: timedelta) -> Courier:
            return await email.open(email.Settings(server.url, timeout=timeout), Path())

        yield Served("email", state, open_courier, lambda number: f"student{number}@example.org")


@asynccontextmanager
async def serve_vk(_: Path) -> AsyncIterator[Served]:
    state = SandboxState()
    async with serving(VkServer(state)) as server:

        async def open_courier(timeout: timedelta) -> Courier:
            return await vk.open(vk.Settings(server.token, server.url, timeout=timeout), Path())

        yield Served("vk", state, open_courier, numbered(200_001))


@asynccontextmanager
async def serve_kannel(_: Path) -> AsyncIterator[Served]:
    state = SandboxState()
    async with serving(SmsServer(state)) as server:

        async def open_courier(timeout: timedelta) -> Courier:
            return await sms.open(sms.Settings(server.url, USERNAME, PASSWORD, "Ada", timeout=timeout), Path())

        yield Served("sms", state, open_courier, numbered(79_990_000_001, "+"))


def serve_profile(name: str) -> Any:
    @asynccontextmanager
    async def serve(_: Path) -> AsyncIterator[Served]:
        state = SandboxState()
        async with serving(SmsProvidersServer(state)) as server:

            async def open_courier(timeout: timedelta) -> Courier:
                given = sms.Settings(server.url, USERNAME, PASSWORD, "Ada", timeout=timeout, profile=name)
                return await sms.open(given, Path())

            yield Served("sms", state, open_courier, numbered(79_990_000_001, "+"), name)

    return serve


@asynccontextmanager
async def serve_telegram(directory: Path) -> AsyncIterator[Served]:
    provider = TelegramProvider(directory)
    await provider.start()

    async def open_courier(timeout: timedelta) -> Courier:
        return await telegram.open(replace(provider.settings(), timeout=timeout), provider.directory)

    yield Served("telegram", provider.state, open_courier, provider.address)
    await provider.stop()


@asynccontextmanager
async def serve_telegram_bot(directory: Path) -> AsyncIterator[Served]:
    state = SandboxState()
    async with serving(BotApiServer(state, token="1:secret")) as server:

        async def open_courier(timeout: timedelta) -> Courier:
            settings = telegram_bot.Settings("1:secret", f"http://127.0.0.1:{server.port}", timeout=timeout)
            return await telegram_bot.open(settings, directory)

        yield Served("telegram-bot", state, open_courier, numbered(100_001))


@asynccontextmanager
async def serve_max(directory: Path) -> AsyncIterator[Served]:
    state = SandboxState()
    async with serving(MaxServer(state, token="secret")) as server:

        async def open_courier(timeout: timedelta) -> Courier:
            settings = max_courier.Settings("secret", f"http://127.0.0.1:{server.port}", timeout=timeout)
            return await max_courier.open(settings, directory)

        yield Served("max", state, open_courier, numbered(300_001))


CHANNELS = {
    "email": serve_email,
    "max": serve_max,
    "sms": serve_kannel,
    **{f"sms by {name}": serve_profile(name) for name in own_profiles()},
    "telegram": serve_telegram,
    "telegram-bot": serve_telegram_bot,
    "vk": serve_vk,
}


@pytest.fixture(params=CHANNELS)
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    async with CHANNELS[request.param](tmp_path) as opened:
        yield opened


@asynccontextmanager
async def running(
    stack: Stack, served: Served, timeout: timedelta, options: CourierOptions = QUICK
) -> AsyncIterator[WatchedStore]:
    """Run the courier on the stack."""
    store = await WatchedStore.open(stack.server.url)
    courier = await served.open(timeout)
    runtime = await stack.courier(courier, options, store)
    yield store
    if runtime in stack.runtimes:
        stack.abandon(runtime)  # a silent provider is not waited for
        stack.advance_clock(options.lease)
    await courier.close()
    await store.close()


async def deliver(stack: Stack, served: Served, *addresses: str) -> HistoryKey:
    people = [Recipient(address, contacts={served.channel: [address]}) for address in addresses]
    return (await stack.deliver(*people, channels=(served.channel,))).key


async def found(stack: Stack, served: Served, keys: Sequence[HistoryKey]) -> dict[str, tuple[Status, int]]:
    """Return address → status and attempts."""
    records = [record for key in keys for record in (await stack.history(key, limit=1000)).recipients]
    return {
        str(one.id): (one.outcomes[served.channel].status, one.outcomes[served.channel].attempts) for one in records
    }


async def test_all_others_are_sent_and_the_account_never_waits_while_the_bad_ones_are_tried(
    stack: Stack, served: Served
) -> None:
    bad, others = served.bad(), [served.address(number) for number in range(OTHERS)]
    async with running(stack, served, LONG) as store:
        before = [await deliver(stack, served, address) for address in bad]
        keys = [await deliver(stack, served, address) for address in others[:20]]
        keys.append(await deliver(stack, served, *others[20:]))
        for key in keys:
            await stack.finished(key, within=60)
        assert {status for status, _ in (await found(stack, served, keys)).values()} <= REACHED
        silent = [key for key, fault in zip(before, bad.values(), strict=True) if fault.name in SILENT]
        if served.channel != "telegram":  # there another bad one may cut the one connection, which ends the silence
            assert {status for status, _ in (await found(stack, served, silent)).values()} <= OPEN
        without_end = SILENT | NAMED_WAIT | served.paused
        tried = [key for key, fault in zip(before, bad.values(), strict=True) if fault.name not in without_end]
        await ended_some_day(stack, store, served.channel, tried)
        assert store.waits == []


async def ended_some_day(stack: Stack, store: Store, channel: str, keys: Sequence[HistoryKey]) -> None:
    """Let quarters of an hour pass, on the clock of the server, until these deliveries are over. While one of them is
    attempted no time passes: that would end its lease before its outcome is recorded.
    """

    async def are_over_a_quarter_later() -> bool:
        left = [key for key in keys if (await stack.history(key, limit=1)).finished_at is None]
        if not any([await is_attempted(stack, channel, key) for key in left]):
            for one in (stack.store, store):
                one.clock_offset_ms += 900_000
        return not left

    await until(are_over_a_quarter_later, every=0.05)


async def is_attempted(stack: Stack, channel: str, key: HistoryKey) -> bool:
    try:
        return (await stack.queue.inspector.view(key.shard, parcel_task(key, channel, 0))).state is TaskState.TAKEN
    except NotFound:
        return False


async def test_a_silent_one_ends(stack: Stack, served: Served) -> None:
    silent = [address for address, fault in served.bad().items() if fault.name in SILENT]
    async with running(stack, served, SHORT, IN_FEW_ATTEMPTS):
        for key in [await deliver(stack, served, address) for address in silent]:
            await stack.finished(key, within=60)


@pytest.mark.parametrize("address", ["анна@example.org", "anna@example.org"])
async def test_a_server_without_smtputf8_refuses_only_addresses_that_need_it(
    stack: Stack, tmp_path: Path, address: str
) -> None:
    """Such a refusal comes at MAIL, where others stop the courier."""
    async with serve_email(tmp_path) as served, running(stack, served, LONG) as store:
        served.state.add_rule(Rule("email", Fault("utf8_refused")))
        key = await deliver(stack, served, address)
        others = await deliver(stack, served, *(served.address(number) for number in range(20)))
        history = await stack.finished(others)
        assert {one.outcomes["email"].status for one in history.recipients} == {Status.SENT}
        (record,) = (await stack.finished(key)).recipients
        assert record.outcomes["email"].status is (Status.SENT if address.isascii() else Status.FAILED)
        assert store.waits == []


@pytest.mark.parametrize("fault", [Fault("disconnect_before"), Fault("bad_gateway"), Fault("request_error", 10)])
async def test_in_a_call_for_a_thousand_one_without_an_answer_is_alone_before_its_attempts_end(
    stack: Stack, tmp_path: Path, fault: Fault
) -> None:
    async with serve_vk(tmp_path) as served, running(stack, served, LONG):
        good = [served.address(number) for number in range(999)]
        served.state.add_rule(Rule("vk", fault, "777777"))
        key = await deliver(stack, served, *good[:500], "777777", *good[500:])
        await stack.finished(key, within=60)
        statuses = await found(stack, served, [key])
        assert {address for address, (status, _) in statuses.items() if status is not Status.SENT} == {"777777"}


def test_twelve_attempts_by_mail_and_the_usual_eight_end_within_an_hour() -> None:
    """With the longest pauses, and each attempt silent until its time limit."""
    by_mail = email.Settings("smtp://h")
    for backoff, timeout in (
        (Backoff(by_mail.first_pause, attempts=by_mail.attempts), by_mail.timeout),
        (
            Backoff(),
            max(vk.Settings("t").timeout, telegram_bot.Settings("1:secret").timeout, max_courier.Settings("t").timeout),
        ),
    ):
        pauses = sum((backoff.pause(number, 1.0) for number in range(1, backoff.attempts)), timedelta(0))
        assert pauses + backoff.attempts * timeout <= timedelta(hours=1)
