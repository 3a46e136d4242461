"""bench deliver: one delivery to many recipients, through courier processes and the sandbox, by channel.

The sandbox plays the providers in one process, so its speed limits what can be shown; its share of a core is in each
row. Telegram is compared with a bare loop over the same library with as many messages in flight: both are measured in
turn, in several rounds, and the medians are shown, because the speed of the machine changes.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import aiohttp

from bench.harness.delivery_samples import TEXT, order, recipient_of
from bench.harness.environment import START_TIMEOUT, Environment, environment
from bench.harness.measurements import CommandCounts, command_counts, cpu_seconds
from bench.harness.report import Row, Rows, log_progress, report_target
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.history_key import HistoryKey
from core.redis.keys import KEYS
from core.redis.store import Store
from couriers.sending.services import CourierOptions

CHANNELS = ("vk", "telegram", "sms")
COURIERS = (1, 2)
LOOPS = {"message": "bare loop", "request": "bare requests"}
"""`message`: client.send_message, the courier's baseline. `request`: only the prepared request, the least possible."""

TIMEOUT = 600.0
TELEGRAM_TARGET = 0.8
ROUNDS = 3
T = TypeVar("T", "DeliveryRun", "LoopRun")
_POLL_INTERVAL = 0.02


def declare_deliver(parser: ArgumentParser) -> None:
    parser.add_argument("--recipients", type=int, default=10_000, help="of each delivery (10000)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"for Telegram, with the bare loop ({ROUNDS})")
    parser.add_argument("--channel", action="append", choices=CHANNELS, help="only this one; may be repeated")


@dataclass(frozen=True, slots=True)
class DeliveryRun:
    """The cost of one delivery. CPU in seconds; `http_calls`: HTTP requests that the provider counted."""

    seconds: float
    commands: CommandCounts
    http_calls: int
    couriers_cpu: float
    sandbox_cpu: float
    valkey_cpu: float


@dataclass(frozen=True, slots=True)
class LoopRun:
    """The time of a bare loop, in seconds."""

    seconds: float
    cpu: float


def median_run(runs: Sequence[T]) -> T:
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


async def measure_deliver(arguments: Namespace, rows: Rows) -> None:
    for channel in arguments.channel or CHANNELS:
        async with environment() as env:
            benchmark = ChannelBenchmark(env, channel, arguments.recipients, rows)
            await benchmark.start_sandbox()
            if channel == "telegram":
                await benchmark.compare_with_loops(arguments.rounds)
            else:
                await benchmark.measure_couriers()


class ChannelBenchmark:
    """One channel, with its own sandbox and server."""

    def __init__(self, env: Environment, channel: str, recipients: int, rows: Rows) -> None:
        self._env = env
        self._channel = channel
        self._recipients = recipients
        self._rows = rows
        self._page = ""
        self._loop_runs: dict[str, list[LoopRun]] = {how: [] for how in LOOPS}

    async def start_sandbox(self) -> None:
        self._sandbox, facts = await self._env.start_command("sandbox", "--json")
        self._page = facts["page"]
        self._env.variables |= facts["environment"]

    async def measure_couriers(self) -> None:
        for couriers in COURIERS:
            self._show_delivery(couriers, await self._deliver(couriers), None)

    async def compare_with_loops(self, rounds: int) -> None:
        runs: dict[int, list[DeliveryRun]] = {couriers: [] for couriers in COURIERS}
        for _ in range(rounds):
            for how, couriers in zip(LOOPS, COURIERS, strict=True):
                self._loop_runs[how].append(await self._run_loop(how))
                runs[couriers].append(await self._deliver(couriers))
        self._show_comparison({couriers: median_run(found) for couriers, found in runs.items()})

    def _show_comparison(self, runs: dict[int, DeliveryRun]) -> None:
        bare = median_run(self._loop_runs["message"]).seconds
        for how, name in LOOPS.items():
            self._show_loop(name, median_run(self._loop_runs[how]), bare)
        for couriers, run in runs.items():
            self._show_delivery(couriers, run, bare)
        ratio = bare / runs[1].seconds
        report_target("telegram, one courier to a bare loop", ratio, f"≥ {TELEGRAM_TARGET}", ratio >= TELEGRAM_TARGET)
        ratio = runs[1].seconds / runs[2].seconds
        report_target("telegram, two couriers to one", ratio, "> 1", ratio > 1)

    def _rate(self, seconds: float) -> dict[str, int]:
        return {"n": self._recipients, "messages_per_s": round(self._recipients / seconds)}

    def _show_loop(self, name: str, loop: LoopRun, bare: float) -> None:
        known: Row = {"channel": self._channel, "system": name, **self._rate(loop.seconds)}
        cpu = self._us_per_message(loop.cpu)
        self._rows.show({**known, "to_bare": round(bare / loop.seconds, 2), "cpu_us_per_message": cpu})

    def _us_per_message(self, seconds: float) -> int:
        return round(seconds / self._recipients * 1e6)

    def _show_delivery(self, couriers: int, run: DeliveryRun, bare: float | None) -> None:
        self._rows.show(
            {
                "channel": self._channel,
                "system": "1 courier" if couriers == 1 else f"{couriers} couriers",
                **self._rate(run.seconds),
                "to_bare": None if bare is None else round(bare / run.seconds, 2),
                "cpu_us_per_message": self._us_per_message(run.couriers_cpu),
                "http_calls": run.http_calls,
                "scripts_per_message": round(run.commands.scripts / self._recipients, 4),
                "commands_per_message": round(run.commands.executed / self._recipients, 4),
                "couriers_cpu_percent": round(100 * run.couriers_cpu / run.seconds),
                "sandbox_cpu_percent": round(100 * run.sandbox_cpu / run.seconds),
                "store_cpu_percent": round(100 * run.valkey_cpu / run.seconds),
            }
        )

    async def _run_loop(self, how: str) -> LoopRun:
        """Sends to recipients to which no earlier loop has written."""
        first = sum(len(runs) for runs in self._loop_runs.values()) * self._recipients
        args = (how, str(self._recipients), str(CourierOptions().concurrency), str(first))
        child = await self._env.start("bare loop", "bench.delivery.telethon_loop", *args)
        await child.facts(START_TIMEOUT)
        run = LoopRun(**await child.facts(TIMEOUT))
        await self._env.stop_child(child)
        self._log_rate(LOOPS[how], run.seconds, run.cpu)
        return run

    async def _deliver(self, couriers: int) -> DeliveryRun:
        children = [(await self._env.start_command("courier", self._channel))[0] for _ in range(couriers)]
        run = await self._measure_delivery([child.pid for child in children])
        for child in children:
            await self._env.stop_child(child)
        self._log_rate(f"{self._channel}, {couriers} couriers", run.seconds, run.couriers_cpu)
        return run

    async def _measure_delivery(self, couriers: Sequence[int]) -> DeliveryRun:
        pid_groups = couriers, [self._sandbox.pid], [self._env.server.pid]
        async with open_deliveries(self._env.url) as deliveries:
            commands, calls = await command_counts(self._env.redis), await self._http_calls()
            cpu, began = [total_cpu(pids) for pids in pid_groups], time.monotonic()
            await self._deliver_to_all(deliveries)
            seconds = time.monotonic() - began
            cpu_used = [total_cpu(pids) - before for pids, before in zip(pid_groups, cpu, strict=True)]
            executed = (await command_counts(self._env.redis)).since(commands)
        return DeliveryRun(seconds, executed, await self._http_calls() - calls, *cpu_used)

    def _log_rate(self, what: str, seconds: float, cpu: float) -> None:
        log_progress(f"{what}: {self._recipients / seconds:,.0f}/s, {self._us_per_message(cpu)} µs of CPU each")

    async def _deliver_to_all(self, deliveries: Deliveries) -> None:
        recipients = [recipient_of(number, [self._channel]) for number in range(self._recipients)]
        accepted = await deliveries.enqueue(order(TEXT, recipients, [self._channel]))
        async with asyncio.timeout(TIMEOUT):
            while (await self._state_and_reached(accepted.key))[0] != "finished":  # noqa: ASYNC110 - the tracker would cost CPU in the measured processes
                await asyncio.sleep(_POLL_INTERVAL)
        _, reached = await self._state_and_reached(accepted.key)
        if reached != self._recipients:
            log_progress(f"only {reached:,} of {self._recipients:,} were reached")

    async def _state_and_reached(self, key: HistoryKey) -> tuple[str | None, int]:
        state, reached = await self._env.redis.hmget(KEYS["history"].at(key.shard, key.suffix), ["state", "reached"])
        return (str(state) if state else None), int(reached or 0)

    async def _http_calls(self) -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{self._page.rstrip('/')}/state.json") as answer:
            counters = (await answer.json())["counters"]
        return int(counters.get(self._channel, {}).get("http", 0))


@asynccontextmanager
async def open_deliveries(url: str) -> AsyncIterator[Deliveries]:
    """Open deliveries on a connection named `bench`, whose commands are not counted."""
    store = await Store.open(f"{url}?client_name=bench")
    try:
        yield Deliveries(store, Channels(store))
    finally:
        await store.close()


def total_cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of these processes together."""
    return sum(cpu_seconds(pid) for pid in pids)
