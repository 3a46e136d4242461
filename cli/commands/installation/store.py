"""The verbs redis-url and cluster: the address of the store, and which primary of a cluster has which shards.

`redis-url` prints the address with its password, for programs of the user's own. `cluster` prints the load of the
primaries, and the moves that balance it; it moves nothing.
"""

import asyncio
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from cli.client.verbs import print_result
from cli.command import SUCCESS, Command, CommandFailed
from cli.processes.embedded_valkey import running_server
from cli.services.store import redis_url
from cli.settings.settings import load
from core.errors import FunctionFault
from core.redis.cluster import Move, balancing_moves
from core.redis.store import Store


def declare_url(parser: ArgumentParser) -> None:
    parser.description = "Prints a secret: it is shown here, and in no log. Write it into no file that others read."


def print_url(arguments: Namespace) -> int:
    """Print ADA_REDIS_URL, or the address of the embedded server over TCP: every library reads redis://. Raises
    SetupError if no server runs.
    """
    settings = load().settings
    server = None if settings.redis_url else running_server(settings.data / "valkey")
    url = server.tcp_url if server else redis_url(settings)
    return print_result(arguments, {"url": url}, url)


_PRIMARY = re.compile(r"^(?P<id>\w+) (?P<place>\S+?)@\S* (?P<flags>\S*master\S*) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Load:
    """The load of each shard since the nodes started. `measure`: `cpu` (µs) or, if they do not count it, `keys`."""

    measure: str
    by_shard: Mapping[int, float]


def declare_cluster(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="plan")
    verbs.add_parser("plan", help="print the load of each primary and the moves that balance it")


def run_cluster(arguments: Namespace) -> int:
    return asyncio.run(plan(arguments))


async def plan(arguments: Namespace) -> int:
    """Print the plan. Raises CommandFailed without a cluster."""
    settings = load().settings
    store = await Store.open(redis_url(settings), settings.shards)
    try:
        await print_plan(store, arguments)
    finally:
        await store.close()
    return SUCCESS


async def print_plan(store: Store, arguments: Namespace) -> None:
    if not store.shard_map.cluster:
        raise CommandFailed("ADA_REDIS_URL names no cluster: all shards stand on one primary.")
    owners = {shard: str(store.shard_map.of(shard).place) for shard in range(store.shards)}
    ids = await primaries(store)
    loads = await load_of(store)
    total = sum(loads.by_shard.values()) or 1.0
    for place in sorted(ids):
        shards = [shard for shard, at in owners.items() if at == place]
        share = sum(loads.by_shard[shard] for shard in shards) / total
        result = {"primary": place, "shards": shards, "share": round(share, 3), "measure": loads.measure}
        listed = ", ".join(map(str, shards)) or "none"
        print_result(arguments, result, f"{place:<22} {share:>4.0%} of the load ({loads.measure}), shards {listed}")
    moves = balancing_moves(loads.by_shard, owners, ids)
    at_once = bool(moves) and await moves_at_once(store)
    for move in moves:
        words = commands_of(store.shard_map.slot_of(move.shard), move, ids, at_once)
        result = {"shard": move.shard, "from": move.source, "to": move.target, "command": words}
        print_result(arguments, result, f"move shard {move.shard} from {move.source} to {move.target}:\n  {words}")
    if not moves and not arguments.json:
        print("nothing to move")


async def moves_at_once(store: Store) -> bool:
    """Return whether the server can move a slot in one step: Valkey 9 can, Redis and older Valkeys cannot."""
    (known,) = await store.command("COMMAND", "INFO", "cluster|migrateslots")
    return known is not None


def commands_of(slot: int, move: Move, ids: Mapping[str, str], at_once: bool) -> str:
    """Return the commands for a shell that move the slot, joined by `&&`. Key by key, the last one moves the keys."""
    source, target = ids[move.source], ids[move.target]
    if at_once:
        return f"valkey-cli {at(move.source)} CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}"
    return (
        f"redis-cli {at(move.target)} CLUSTER SETSLOT {slot} IMPORTING {source}"
        f" && redis-cli {at(move.source)} CLUSTER SETSLOT {slot} MIGRATING {target}"
        f" && redis-cli --cluster fix {move.source}"
    )


def at(place: str) -> str:
    """Return the options of valkey-cli and redis-cli for host:port."""
    host, _, port = place.rpartition(":")
    return f"-h {host} -p {port}"


async def primaries(store: Store) -> dict[str, str]:
    """Return host:port → node id of the primaries, also of those without a slot."""
    text = str(await store.command("CLUSTER", "NODES"))
    return {one["place"]: one["id"] for one in _PRIMARY.finditer(text) if "fail" not in one["flags"].split(",")}


async def load_of(store: Store) -> Load:
    try:
        stats = [await slot_stats(store, shard) for shard in range(store.shards)]
    except FunctionFault:  # a server before Valkey 8
        keys = [await count_keys(store, shard) for shard in range(store.shards)]
        return Load("keys", dict(enumerate(map(float, keys))))
    measure, name = ("cpu", "cpu-usec") if any(one.get("cpu-usec") for one in stats) else ("keys", "key-count")
    return Load(measure, {shard: float(one[name]) for shard, one in enumerate(stats)})


async def slot_stats(store: Store, shard: int) -> Mapping[str, int]:
    slot = store.shard_map.slot_of(shard)
    ((_, stats),) = await store.command_at(shard, "CLUSTER", "SLOT-STATS", "SLOTSRANGE", slot, slot)
    found: Mapping[str, int] = stats
    return found


async def count_keys(store: Store, shard: int) -> int:
    return int(await store.command_at(shard, "CLUSTER", "COUNTKEYSINSLOT", store.shard_map.slot_of(shard)))


COMMANDS: Mapping[str, Command] = {
    "redis-url": Command(declare_url, print_url),
    "cluster": Command(declare_cluster, run_cluster),
}
