"""The courier in Node (examples/node-courier), run for real: alone, beside ours, over faults, and killed."""

import asyncio
import json
import shutil
import signal
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import msgspec
import pytest

from core.model.delivery import Recipient
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import Status
from core.model.text.personal import Personal
from core.queue import QueueClient
from core.redis import server_checks
from couriers.sending import Reason
from couriers.sms import courier as sms
from examples import NODE_COURIER, NODE_QUEUE
from sandbox.events import Fault, Rule
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.sms import SmsServer
from sandbox.sms.server import PASSWORD, SENDER, USERNAME
from sandbox.state import SandboxState
from tests.couriers.relay import Relay
from tests.support.paths import ROOT
from tests.support.stack import LEASE, Stack
from tests.support.stored_tasks import stored_facts
from tests.support.waiting import until

MAGIC = {fault.name: address for address, fault in MAGIC_RECIPIENTS["sms"].items()}
NEVER_WAKES_BY_ITSELF = "600000"


class StartCourier(Protocol):
    """Starts the courier in Node and waits until it listens. `port`: of a relay to the server."""

    async def __call__(self, port: int = 0) -> asyncio.subprocess.Process: ...


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with the packages that it needs."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node.js with npm on this machine")
    directory = tmp_path_factory.mktemp("npm") / NODE_COURIER.name
    shutil.copytree(NODE_COURIER, directory, ignore=shutil.ignore_patterns("node_modules"))
    npm = ["npm", "ci", "--prefer-offline", "--fetch-retries=5", "--no-audit", "--no-fund"]
    result = subprocess.run(npm, cwd=directory, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return directory


class Gateway:
    """The sandbox's SMS gateway, and what it has received."""

    def __init__(self) -> None:
        self.state = SandboxState()
        self.server = SmsServer(self.state, report_delay=0)

    @property
    def settings(self) -> sms.Settings:
        return sms.Settings(self.server.url, USERNAME, PASSWORD, SENDER)

    def texts(self, address: str) -> list[str]:
        return [message.text for message in self.state.inbox("sms", address)]


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    opened = Gateway()
    await opened.server.start()
    yield opened
    await opened.server.stop()


@pytest.fixture
async def start_courier(stack: Stack, gateway: Gateway, installed: Path) -> AsyncIterator[StartCourier]:
    """The couriers that it starts wake only on events, for the time of a test. They end with the test, with code 0."""
    await server_checks.register(stack.store)
    variables = {
        "ADA_SMS_URL": gateway.server.url,
        "ADA_SMS_USERNAME": USERNAME,
        "ADA_SMS_PASSWORD": PASSWORD,
        "ADA_SMS_FROM": SENDER,
        "MAX_SLEEP_MS": NEVER_WAKES_BY_ITSELF,
    }
    running: list[asyncio.subprocess.Process] = []

    async def start(port: int = 0) -> asyncio.subprocess.Process:
        url = stack.server.url_through(port) if port else stack.server.place.tcp_url
        process = await asyncio.create_subprocess_exec(
            str(shutil.which("node")),
            "courier.js",
            cwd=installed,
            env={**variables, "ADA_REDIS_URL": url},
            stdout=asyncio.subprocess.PIPE,
        )
        running.append(process)
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
        return process

    yield start
    for process in running:
        if process.returncode is None:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 20) == 0


def recipients(*addresses: str) -> list[Recipient]:
    return [Recipient(address, contacts={"sms": [address]}) for address in addresses]


def numbers(count: int) -> list[str]:
    return [f"+7999{number:07}" for number in range(count)]


async def deliver(stack: Stack, *addresses: str, **options: Any) -> HistoryKey:
    return (await stack.deliver(*recipients(*addresses), channels=("sms",), **options)).key


def outcomes(history: History) -> dict[str, tuple[Status, str | None]]:
    found = {str(record.id): record.outcomes["sms"] for record in history.recipients}
    return {address: (outcome.status, outcome.reason) for address, outcome in found.items()}


@asynccontextmanager
async def our_courier(stack: Stack, gateway: Gateway) -> AsyncIterator[None]:
    """Ada's own courier for SMS, beside the one in Node."""
    own = await sms.open(gateway.settings, Path())
    runtime = await stack.courier(own)
    yield
    await stack.stop(runtime)
    await own.close()


async def test_it_fills_personal_texts(stack: Stack, gateway: Gateway, start_courier: StartCourier) -> None:
    await start_courier()
    first, second = numbers(2)
    personal = Personal(["mark of maths", "name"], [["5", None], ["{{x}} $&", "Boris"]])
    text = r"{{Name|you}}: {{ Mark of  MATHS }} \{{none}} {"
    await stack.finished(await deliver(stack, first, second, text=text, personal=personal))
    expected = ["you: 5 {{none}} {"], ["Boris: {{x}} $& {{none}} {"]
    assert (gateway.texts(first), gateway.texts(second)) == expected


async def test_it_wakes_when_the_order_key_vanishes_and_sends_to_each_recipient(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    await start_courier()
    for text in ("hello", 'Привет, "мир" & co: {50 %} 👋'):
        found = await stack.finished(await deliver(stack, *numbers(3), text=text))
        assert set(outcomes(found).values()) == {(Status.SENT, None)}
        assert [gateway.texts(number)[-1] for number in numbers(3)] == [text] * 3


async def test_it_wakes_by_events_although_their_connection_was_the_slower_one(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    """It subscribed before ioredis had checked that connection. The check failed, and ioredis connected again without
    the subscription: the courier slept on.
    """
    relay = Relay(stack.server.place.port, reply_delays={2: 0.3})
    await relay.start()
    courier = await start_courier(relay.port)
    for due in (stack.now() + timedelta(seconds=1), None):
        found = await stack.finished(await deliver(stack, *numbers(1), deliver_at=due))
        assert set(outcomes(found).values()) == {(Status.SENT, None)}
        await until(lambda: stack.redis.exists("delivery:{0}:idle:sms"))  # it sleeps
    assert relay.connections == 2
    courier.terminate()
    assert await asyncio.wait_for(courier.wait(), 20) == 0
    await relay.stop()


async def test_it_sends_a_deferred_delivery_at_its_time(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    await start_courier()
    due = stack.now() + timedelta(seconds=1)
    found = await stack.finished(await deliver(stack, *numbers(1), deliver_at=due))
    (record,) = found.recipients
    assert record.outcomes["sms"].status is Status.SENT
    at = record.outcomes["sms"].at
    assert at is not None
    assert at >= due


async def test_beside_our_courier_each_recipient_gets_each_message_once(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    await start_courier()
    async with our_courier(stack, gateway):
        keys = [await deliver(stack, *numbers(4), text=f"message {n}") for n in range(20)]
        for key in keys:
            assert set(outcomes(await stack.finished(key)).values()) == {(Status.SENT, None)}
    for number in numbers(4):
        assert sorted(gateway.texts(number)) == sorted(f"message {n}" for n in range(20))


async def test_what_the_gateway_refuses_fails_and_what_it_leaves_open_is_unknown(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    await start_courier()
    addresses = (MAGIC["bad_number"], MAGIC["accepted_then_cut"], MAGIC["bad_gateway"], *numbers(1))
    assert outcomes(await stack.finished(await deliver(stack, *addresses))) == {
        MAGIC["bad_number"]: (Status.FAILED, Reason.RECIPIENT_UNREACHABLE),
        MAGIC["accepted_then_cut"]: (Status.UNKNOWN, Reason.ANSWER_LOST),
        MAGIC["bad_gateway"]: (Status.UNKNOWN, Reason.ANSWER_LOST),
        numbers(1)[0]: (Status.SENT, None),
    }
    assert len(gateway.texts(MAGIC["accepted_then_cut"])) == 1


async def test_who_wants_messages_at_other_hours_waits_for_them(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    process = await start_courier()
    later, now, daily = numbers(3)
    opens = stack.now() + timedelta(hours=2)
    zone = ZoneInfo("Asia/Kathmandu")  # three quarters of an hour from the full one
    hours = {
        later: f"{opens.astimezone(zone):%H:%M}-{opens.astimezone(zone) + timedelta(hours=1):%H:%M} Asia/Kathmandu",
        now: f"{stack.now() - timedelta(hours=1):%H:%M}-{stack.now() + timedelta(hours=1):%H:%M} UTC",
        daily: f"{opens:%H:%M}-{opens:%H:%M} UTC",
    }
    people = [msgspec.structs.replace(one, hours=hours[str(one.id)]) for one in recipients(later, now, daily)]
    key = (await stack.deliver(*people, channels=("sms",))).key
    await until(lambda: waits(stack, key))
    assert [len(gateway.texts(one)) for one in (later, now, daily)] == [0, 1, 0]
    due = int((await stored_facts(stack.redis, f"{key.ns}.{key.sender}.sms.0"))["due"])
    assert due == int(opens.replace(second=0, microsecond=0).timestamp()) * 1000
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    stack.advance_clock(timedelta(hours=2))
    async with our_courier(stack, gateway):
        assert set(outcomes(await stack.finished(key)).values()) == {(Status.SENT, None)}
    assert [len(gateway.texts(one)) for one in (later, now, daily)] == [1, 1, 1]


async def waits(stack: Stack, key: HistoryKey) -> bool:
    return (await stored_facts(stack.redis, f"{key.ns}.{key.sender}.sms.0")).get("state") == "waiting"


async def test_what_a_busy_gateway_did_not_take_is_sent_later_by_any_courier(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    process = await start_courier()
    (busy,) = numbers(1)
    gateway.state.add_rule(Rule("sms", Fault("busy"), address=busy, times=1))
    key = await deliver(stack, busy)
    await until(lambda: is_attempted(stack, key))
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    stack.advance_clock(timedelta(seconds=6))
    async with our_courier(stack, gateway):
        assert outcomes(await stack.finished(key)) == {busy: (Status.SENT, None)}
    assert len(gateway.texts(busy)) == 1


async def is_attempted(stack: Stack, key: HistoryKey) -> bool:
    (record,) = (await stack.history(key)).recipients
    outcome = record.outcomes.get("sms")
    return outcome is not None and (outcome.reason == Reason.PROVIDER_DOWN or outcome.status is Status.SENT)


async def is_sending(stack: Stack, key: HistoryKey) -> bool:
    first, _ = (await stack.history(key)).recipients
    return "sms" in first.outcomes and first.outcomes["sms"].status is Status.SENDING


async def test_after_it_was_killed_our_courier_repeats_no_message(
    stack: Stack, gateway: Gateway, start_courier: StartCourier
) -> None:
    process = await start_courier()
    silent, next_one = MAGIC["timeout"], numbers(1)[0]
    key = await deliver(stack, silent, next_one)
    await until(lambda: is_sending(stack, key))
    process.send_signal(signal.SIGKILL)
    await process.wait()
    stack.advance_clock(LEASE)
    async with our_courier(stack, gateway):
        found = outcomes(await stack.finished(key))
    assert found == {silent: (Status.UNKNOWN, Reason.CRASHED), next_one: (Status.SENT, None)}


async def test_the_program_of_the_page_puts_and_handles_a_task(stack: Stack, installed: Path) -> None:
    await server_checks.register(stack.store)
    page = (ROOT / "docs" / "other-languages.md").read_text(encoding="utf-8")
    program = installed / "tasks.js"
    program.write_text(page.split("```js\n", 1)[1].split("```", 1)[0], encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        str(shutil.which("node")),
        program.name,
        cwd=installed,
        env={"ADA_REDIS_URL": stack.server.place.tcp_url},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert output.decode().splitlines() == ["put: [ 'ready' ]", "month 11 is done"]
    assert process.returncode == 0


async def test_the_module_for_node_puts_calls_waits_cancels_and_works(stack: Stack, installed: Path) -> None:
    """Its worker also answers a caller in Python. Both examples have the same client of Redis."""
    assert len((NODE_QUEUE / "ada.js").read_text(encoding="utf-8").splitlines()) <= 150
    assert json.loads((NODE_QUEUE / "package.json").read_text())["dependencies"] == {"ioredis": "5.11.1"}
    await server_checks.register(stack.store)
    for name in ("ada.js", "shout.js"):
        shutil.copy(NODE_QUEUE / name, installed / name)
    (installed / "echo.js").write_text(ECHO, encoding="utf-8")
    node, url = str(shutil.which("node")), stack.server.place.tcp_url
    program = partial(asyncio.create_subprocess_exec, node, cwd=installed, env={"ADA_REDIS_URL": url}, stdout=PIPE)
    output, _ = await asyncio.wait_for((await program("shout.js")).communicate(), 60)
    assert output.decode().splitlines() == ["HELLO", "{ state: 'done', answer: 'SHAKY' }", "failed", "true"]
    worker, client = await program("echo.js"), QueueClient(stack.store)
    assert await client.call("echo", "ёж") == "ёж 1 half way"
    wrong = await client.put("echo", "object")
    await until(lambda: has_failed(stack, wrong))
    worker.terminate()
    assert await asyncio.wait_for(worker.wait(), 20) == 0
    await client.close()


ECHO = """
import { close, connect, work } from "./ada.js";
const ada = await connect(process.env.ADA_REDIS_URL), stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
await work(ada, "echo", async (task) => {
  if (task.body === "object") return { a: 1 };
  if (task.attempts === 1 && !task.checkpoint) return { result: "retry", afterMs: 1, checkpoint: "half way" };
  return `${task.body} ${await task.save("more") ? 1 : 0} ${task.checkpoint}`;
}, { signal: stop.signal });
close(ada);
"""


async def has_failed(stack: Stack, task_id: str) -> bool:
    return "must return" in ((await stack.queue.inspector.peek(task_id)).error or "")
