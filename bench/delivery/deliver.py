"""bench deliver: one delivery to many people, through courier processes and the sandbox, by channel.

The sandbox plays the providers in one process, so its own speed is the limit of what can be shown; its share of a core
stands beside each rate. Telegram is compared with a bare loop over the same library, as many messages under way: in
turns, in several rounds, and the medians are shown, for the machine may be slower at one time than at another.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp

from bench.delivery.samples import SHORT, order, person
from bench.harness.cost import Commands, commands, cpu_of
from bench.harness.ground import START, Ground, ground
from bench.harness.rows import Row, Rows, say, verdict
from core.courier.options import CourierOptions
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.model.history_key import HistoryKey
from core.redis.keys import KEYS
from core.redis.store import Store

CHANNELS = ("vk", "telegram", "sms")
PROCESSES = (1, 2)
LOOPS = {"message": "bare loop", "request": "bare requests"}
"""client.send_message, which is what the courier is compared with, and the ready request alone, the least there is."""

LONGEST = 600.0
TELEGRAM_WANTED = 0.8
ROUNDS = 3
T = TypeVar("T", "Run", "Loop")
_LOOK = 0.02


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--recipients", type=int, default=10_000, help="of each delivery (10000)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"beside the bare loop ({ROUNDS})")
    parser.add_argument("--channel", action="append", choices=CHANNELS, help="only this one; may be given again")


@dataclass(frozen=True, slots=True)
class Run:
    """What one delivery took. CPU in seconds; `calls`: requests over HTTP that the provider counted."""

    seconds: float
    commands: Commands
    calls: int
    couriers: float
    sandbox: float
    store: float


@dataclass(frozen=True, slots=True)
class Loop:
    """What a bare loop took, in seconds."""

    seconds: float
    cpu: float


def middle(found: Sequence[T]) -> T:
    """The one that was neither quick nor slow."""
    return sorted(found, key=lambda one: one.seconds)[(len(found) - 1) // 2]


async def measure(arguments: Namespace, rows: Rows) -> None:
    for channel in arguments.channel or CHANNELS:
        async with ground() as place:
            stage = Stage(place, channel, arguments.recipients, rows)
            await stage.open()
            await (stage.beside_a_bare_loop(arguments.rounds) if channel == "telegram" else stage.alone())


class Stage:
    """One channel, with a sandbox and a server of its own."""

    def __init__(self, place: Ground, channel: str, count: int, rows: Rows) -> None:
        self._place = place
        self._channel = channel
        self._count = count
        self._rows = rows
        self._page = ""
        self._loops: dict[str, list[Loop]] = {how: [] for how in LOOPS}

    async def open(self) -> None:
        self._sandbox, facts = await self._place.start_verb("sandbox", "--json")
        self._page = facts["page"]
        self._place.environment |= facts["environment"]

    async def alone(self) -> None:
        for processes in PROCESSES:
            self._show(processes, await self._deliver(processes), None)

    async def beside_a_bare_loop(self, rounds: int) -> None:
        runs: dict[int, list[Run]] = {processes: [] for processes in PROCESSES}
        for _ in range(rounds):
            for how, processes in zip(LOOPS, PROCESSES, strict=True):
                self._loops[how].append(await self._loop(how))
                runs[processes].append(await self._deliver(processes))
        bare = middle(self._loops["message"]).seconds
        for how, name in LOOPS.items():
            self._show_loop(name, middle(self._loops[how]), bare)
        shown = {processes: middle(found) for processes, found in runs.items()}
        for processes, run in shown.items():
            self._show(processes, run, bare)
        found = bare / shown[1].seconds
        verdict("telegram, one courier to a bare loop", found, f"≥ {TELEGRAM_WANTED}", found >= TELEGRAM_WANTED)
        found = shown[1].seconds / shown[2].seconds
        verdict("telegram, two couriers to one", found, "> 1", found > 1)

    def _rate(self, seconds: float) -> dict[str, int]:
        return {"n": self._count, "messages_per_s": round(self._count / seconds)}

    def _show_loop(self, name: str, loop: Loop, bare: float) -> None:
        known: Row = {"channel": self._channel, "system": name, **self._rate(loop.seconds)}
        self._rows.show({**known, "to_bare": round(bare / loop.seconds, 2), "cpu_us_per_message": self._each(loop.cpu)})

    def _each(self, seconds: float) -> int:
        return round(seconds / self._count * 1e6)

    def _show(self, processes: int, run: Run, bare: float | None) -> None:
        scripts, executed = (part / self._count for part in (run.commands.scripts, run.commands.executed))
        self._rows.show(
            {
                "channel": self._channel,
                "system": "1 courier" if processes == 1 else f"{processes} couriers",
                **self._rate(run.seconds),
                "to_bare": None if bare is None else round(bare / run.seconds, 2),
                "cpu_us_per_message": self._each(run.couriers),
                "http_calls": run.calls,
                "scripts_per_message": round(scripts, 4),
                "commands_per_message": round(executed, 4),
                "couriers_cpu_percent": round(100 * run.couriers / run.seconds),
                "sandbox_cpu_percent": round(100 * run.sandbox / run.seconds),
                "store_cpu_percent": round(100 * run.store / run.seconds),
            }
        )

    async def _loop(self, how: str) -> Loop:
        """To people whom no loop has written to before."""
        first = sum(len(took) for took in self._loops.values()) * self._count
        words = (how, str(self._count), str(CourierOptions().side_by_side), str(first))
        child = await self._place.start("bare loop", "bench.baselines.telethon", *words)
        await child.facts(START)
        loop = Loop(**await child.facts(LONGEST))
        await self._place.end(child)
        say(f"{LOOPS[how]}: {self._count / loop.seconds:,.0f}/s, {self._each(loop.cpu)} µs of CPU each")
        return loop

    async def _deliver(self, processes: int) -> Run:
        couriers = [(await self._place.start_verb("courier", self._channel))[0] for _ in range(processes)]
        watched = [child.pid for child in couriers], [self._sandbox.pid], [self._place.store.pid]
        async with opened_histories(self._place.url) as histories:
            before, calls = await commands(self._place.redis), await self._calls()
            used, began = [spent(pids) for pids in watched], time.monotonic()
            await self._through(histories)
            seconds = time.monotonic() - began
            shares = [spent(pids) - early for pids, early in zip(watched, used, strict=True)]
            asked = (await commands(self._place.redis)).since(before)
        run = Run(seconds, asked, await self._calls() - calls, *shares)
        for courier in couriers:
            await self._place.end(courier)
        each = self._each(run.couriers)
        say(f"{self._channel}, {processes} couriers: {self._count / seconds:,.0f}/s, {each} µs of CPU each")
        return run

    async def _through(self, histories: Deliveries) -> None:
        people = [person(number, [self._channel]) for number in range(self._count)]
        accepted = await histories.enqueue(order(SHORT, people, [self._channel]))
        async with asyncio.timeout(LONGEST):
            while (await self._facts(accepted.key))["state"] != "finished":  # noqa: ASYNC110 - waiting must cost nothing
                await asyncio.sleep(_LOOK)
        reached = int((await self._facts(accepted.key))["reached"] or 0)
        if reached != self._count:
            say(f"only {reached:,} of {self._count:,} were reached")

    async def _facts(self, key: HistoryKey) -> Mapping[str, Any]:
        names = ("state", "reached")
        return dict(
            zip(names, await self._place.redis.hmget(KEYS["history"].at(key.shard, key.suffix), names), strict=True)
        )

    async def _calls(self) -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{self._page.rstrip('/')}/state.json") as answer:
            counters = (await answer.json())["counters"]
        return int(counters.get(self._channel, {}).get("http", 0))


@asynccontextmanager
async def opened_histories(url: str) -> AsyncIterator[Deliveries]:
    """On a connection that is not counted."""
    store = await Store.open(f"{url}?client_name=bench")
    try:
        yield Deliveries(store, Channels(store))
    finally:
        await store.close()


def spent(pids: Sequence[int]) -> float:
    """Seconds of CPU of these processes together."""
    return sum(cpu_of(pid) for pid in pids)
