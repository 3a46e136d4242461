"""bench enqueue: deliveries per second that one API process accepts, compared with a bare aiohttp handler;
and bench durability, what ADA_DURABILITY=replica costs them.

One load generator (its own process) measures every load in turn: the bare handler, the bare handler that reads and
writes JSON, many clients that post one by one, one client that posts one by one, one client that posts in bulk, one
client that posts to many people at once: one text, and a personal text for each.
The API is the real one: `./ada serve` with real keys and scripts and the append-only file on. Each round has a fresh
server: a server rewrites its append-only file each time the file has doubled, which takes a core for seconds and would
disturb one load and not another.
"""

import json
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis

from bench.harness.delivery_samples import TEXT, address
from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment, python
from bench.harness.measurements import cpu_seconds
from bench.harness.report import Rows, log_progress, median, report_target
from cli.commands.start.installation import valkey_is_ready
from cli.processes import embedded_valkey
from core.model.durability import Durability

PROGRAMS = "bench.delivery.programs"
ANSWER_BYTES = 230
"""The size of the API's own answer to one delivery."""

BARE = ("bare handler", "bare JSON")
CHANNELS = ("telegram", "vk", "sms")
SINGLE_TARGET, BULK_TARGET, PERSONAL_TARGET = 0.4, 5.0, 3.0
SHARED, PERSONAL = "one text to many", "personal texts"


def declare_enqueue(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each load in a round (2)")
    parser.add_argument("--rounds", type=int, default=8, help="how often each load is measured (8)")
    parser.add_argument("--connections", type=int, default=64, help="of the load generator (64)")
    parser.add_argument("--lines", type=int, default=1000, help="deliveries in one bulk request (1000)")
    parser.add_argument("--people", type=int, default=10_000, help="of a delivery to many (10000)")
    parser.add_argument("--due", choices=["now", "later"], default="later", help="when the deliveries are due (later)")


@dataclass(frozen=True, slots=True)
class EnqueueLoad:
    """One kind of request. `deliveries`: how many are in one request."""

    name: str
    url: str
    body: bytes
    connections: int
    deliveries: int = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """Deliveries per second; CPU shares (1.0 is one core) of the HTTP server's process and of Valkey."""

    rate: float
    http_server: float
    valkey: float


async def measure_enqueue(arguments: Namespace, rows: Rows) -> None:
    measurements: dict[str, list[Measurement]] = defaultdict(list)
    for number in range(arguments.rounds):
        async for load, measurement in run_round(arguments):
            measurements[load.name].append(measurement)
            log_progress(f"{number + 1}/{arguments.rounds} {load.name}: {measurement.rate:,.0f}/s")
    show(measurements, rows)


async def run_round(arguments: Namespace) -> AsyncIterator[tuple[EnqueueLoad, Measurement]]:
    async with environment() as env:
        api, api_facts = await env.start_command("serve")
        bare = await env.start("bare", PROGRAMS, "bare", str(ANSWER_BYTES))
        bare_facts = await bare.facts(START_TIMEOUT)
        for load in loads_of(bare_facts["http"], api_facts["http"], arguments):
            http_server = bare if load.name in BARE else api
            yield load, await measure_load(env, load, http_server, arguments.seconds)


def loads_of(bare: str, api: str, arguments: Namespace) -> Sequence[EnqueueLoad]:
    body = json.dumps(delivery(arguments.due == "later"), ensure_ascii=False).encode()
    lines = (body + b"\n") * arguments.lines
    path = "/v1/deliveries"
    return (
        EnqueueLoad("bare handler", bare + path, body, arguments.connections),
        EnqueueLoad("bare JSON", bare + "/json", body, arguments.connections),
        EnqueueLoad("one by one", api + path, body, arguments.connections),
        EnqueueLoad("one client", api + path, body, 1),
        EnqueueLoad("bulk", f"{api}{path}/bulk", lines, 1, arguments.lines),
        EnqueueLoad(SHARED, api + path, to_many(arguments, is_personal=False), 1),
        EnqueueLoad(PERSONAL, api + path, to_many(arguments, is_personal=True), 1),
    )


def to_many(arguments: Namespace, *, is_personal: bool) -> bytes:
    numbers = range(arguments.people)
    people = [{"id": number, "contacts": {"sms": address("sms", number)}} for number in numbers]
    values = [{"mark": number % 5 + 1, "n": number} if is_personal else {} for number in numbers]
    recipients = [one | ({"values": own} if own else {}) for one, own in zip(people, values, strict=True)]
    body = {
        **delivery(arguments.due == "later"),
        "recipients": recipients,
        "channels": ["sms"],
        "text": "No {{n}}: {{mark}}",
    }
    return json.dumps(body, separators=(",", ":")).encode()


def delivery(later: bool) -> Mapping[str, Any]:
    at = (datetime.now(UTC) + timedelta(days=30)).isoformat() if later else None
    recipient = {"id": 1, "name": "Петров П. П.", "contacts": {channel: address(channel, 1) for channel in CHANNELS}}
    return {"sender": {"id": 42, "name": "Иванов И. И."}, "text": TEXT, "recipients": [recipient], "deliver_at": at}


async def measure_load(env: Environment, load: EnqueueLoad, http_server: ChildProcess, seconds: float) -> Measurement:
    before = cpu_seconds(http_server.pid), cpu_seconds(env.server.pid)
    facts = await generate(env, load, seconds)
    after = cpu_seconds(http_server.pid), cpu_seconds(env.server.pid)
    if not facts["answers"]:
        raise SystemExit(f"{load.name}: no request was answered within {seconds:g} s; give more --seconds")
    shares = [(late - early) / seconds for early, late in zip(before, after, strict=True)]
    return Measurement(facts["answers"] * load.deliveries / facts["seconds"], *shares)


async def generate(env: Environment, load: EnqueueLoad, seconds: float) -> Mapping[str, Any]:
    """Runs the load generator and returns what it announced."""
    file = env.directory / "body"
    file.write_bytes(load.body)
    command = python(PROGRAMS, "load", load.url, str(load.connections), str(seconds))
    generator = await ChildProcess.start("load", command, {"BENCH_BODY": str(file)}, env.directory)
    try:
        return await generator.facts(timeout=seconds + START_TIMEOUT)
    finally:
        await generator.stop()


def show(measurements: Mapping[str, Sequence[Measurement]], rows: Rows) -> None:
    """Shows medians. A ratio compares two loads of the same round, because the speed of the machine changes."""
    for name, own in measurements.items():
        rows.show(
            {
                "system": name,
                "deliveries_per_s": round(median([one.rate for one in own])),
                "to_bare": round(_ratio(own, measurements["bare handler"]), 2),
                "to_bare_json": round(_ratio(own, measurements["bare JSON"]), 2),
                "to_one_client": round(_ratio(own, measurements["one client"]), 2),
                "to_one_by_one": round(_ratio(own, measurements["one by one"]), 2),
                "server_us": round(1e6 * median([one.http_server / one.rate for one in own]), 1),
                "server_cpu_percent": round(100 * median([one.http_server for one in own])),
                "store_cpu_percent": round(100 * median([one.valkey for one in own])),
            }
        )
    single = _ratio(measurements["one by one"], measurements["bare JSON"])
    bulk = _ratio(measurements["bulk"], measurements["one client"])
    report_target("one by one to bare JSON", single, f"≥ {SINGLE_TARGET}", single >= SINGLE_TARGET)
    personal = _ratio(measurements[SHARED], measurements[PERSONAL])
    report_target("personal texts to one text", personal, f"≤ {PERSONAL_TARGET:g}", personal <= PERSONAL_TARGET)
    report_target("one client, bulk to one by one", bulk, f"≥ {BULK_TARGET:g}", bulk >= BULK_TARGET)


def _ratio(ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> float:
    return median([own.rate / other.rate for own, other in zip(ours, theirs, strict=True)])


LOADS = ("one by one", "one client")


def declare_durability(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each load in a round (2)")
    parser.add_argument("--rounds", type=int, default=4, help="how often each load is measured (4)")
    parser.add_argument("--connections", type=int, default=64, help="of the load generator (64)")
    parser.set_defaults(due="later", lines=1, people=1)


async def measure_durability(arguments: Namespace, rows: Rows) -> None:
    """Show what ADA_DURABILITY=replica costs, beside `local`.

    Two API processes, one with each durability, on one primary with one replica, all on this machine. The generator
    posts deliveries that are due in a month, from one client and from 64, to both in turn. Loopback hides what a
    network adds: a round trip between primary and replica for each batch.
    """
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    async with environment() as env, replica_of(env):
        servers = {durability: await start_api(env, durability) for durability in Durability}
        for number in range(arguments.rounds):
            for durability, (api, url) in servers.items():
                for load in (one for one in loads_of("", url, arguments) if one.name in LOADS):
                    rate = await rate_of(env, load, api, arguments.seconds)
                    rates[durability, load.name].append(rate)
                    log_progress(f"{number + 1}/{arguments.rounds} {durability}, {load.name}: {rate:,.0f}/s")
    show_durability(rates, rows, arguments.connections)


async def rate_of(env: Environment, load: EnqueueLoad, api: ChildProcess, seconds: float) -> float:
    return (await measure_load(env, load, api, seconds)).rate


async def start_api(env: Environment, durability: Durability) -> tuple[ChildProcess, str]:
    env.variables["ADA_DURABILITY"] = durability
    api, facts = await env.start_command("serve")
    return api, str(facts["http"])


@asynccontextmanager
async def replica_of(env: Environment) -> AsyncIterator[None]:
    """Run a replica of the server of an environment, from the moment it has caught up."""
    port, password = embedded_valkey.last_port_and_password(env.directory / "valkey" / "valkey.conf")
    place = embedded_valkey.prepare(env.directory / "replica")
    follow = ("--replicaof", "127.0.0.1", str(port), "--primaryauth", str(password), "--repl-diskless-sync-delay", "0")
    command = [*place.command(), *follow]
    replica = await ChildProcess.start("replica", command, embedded_valkey.ENVIRONMENT, env.directory, valkey_is_ready)
    try:
        await replica.facts(START_TIMEOUT)
        async with Redis.from_url(env.url, client_name="bench", socket_timeout=START_TIMEOUT) as redis:
            await redis.wait(1, int(START_TIMEOUT * 1000))
        yield
    finally:
        await replica.stop()


def show_durability(rates: Mapping[tuple[str, str], Sequence[float]], rows: Rows, connections: int) -> None:
    """Shows medians; `to_local` compares the same round."""
    for (durability, load), own in rates.items():
        local = rates[Durability.LOCAL, load]
        rows.show(
            {
                "durability": str(durability),
                "clients": 1 if load == "one client" else connections,
                "deliveries_per_s": round(median(own)),
                "to_local": round(median([one / other for one, other in zip(own, local, strict=True)]), 2),
            }
        )
