"""bench durability: what ADA_DURABILITY=replica costs, beside `local`.

Two API processes, one with each durability, on one primary with one replica, all on this machine. The generator posts
deliveries that are due in a month, from one client and from 64, to both in turn. Loopback hides what a network adds: a
round trip between primary and replica for each batch.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from bench.delivery.enqueue import EnqueueLoad, loads_of, measure_load
from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment
from bench.harness.report import Rows, log_progress, median
from cli.commands.start.installation import valkey_is_ready
from cli.processes import embedded_valkey
from core.model.durability import Durability

LOADS = ("one by one", "one client")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each load in a round (2)")
    parser.add_argument("--rounds", type=int, default=4, help="how often each load is measured (4)")
    parser.add_argument("--connections", type=int, default=64, help="of the load generator (64)")
    parser.set_defaults(due="later", lines=1, people=1)


async def measure(arguments: Namespace, rows: Rows) -> None:
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    async with environment() as env, replica_of(env):
        servers = {durability: await start_api(env, durability) for durability in Durability}
        for number in range(arguments.rounds):
            for durability, (api, url) in servers.items():
                for load in (one for one in loads_of("", url, arguments) if one.name in LOADS):
                    rate = await rate_of(env, load, api, arguments.seconds)
                    rates[durability, load.name].append(rate)
                    log_progress(f"{number + 1}/{arguments.rounds} {durability}, {load.name}: {rate:,.0f}/s")
    show(rates, rows, arguments.connections)


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


def show(rates: Mapping[tuple[str, str], Sequence[float]], rows: Rows, connections: int) -> None:
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
