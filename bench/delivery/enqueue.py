"""bench enqueue: deliveries per second that one API process takes, beside a bare aiohttp handler that answers the same.

All answer the same load generator, a process of its own, in turns: the bare handler, the bare handler that reads and
writes JSON, many clients that post one by one, one client that does, one client that posts in bulk, the bare handler, …
The API is the real one: `./ada serve`, real keys, real scripts, append-only file on. Each round has a server and
processes of its own: a server rewrites its file each time it has doubled, a core's work for seconds, which would fall
into one turn or another.
"""

import json
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.delivery.samples import SHORT, address
from bench.harness.child import Child, python
from bench.harness.cost import cpu_of
from bench.harness.ground import START, Ground, ground
from bench.harness.rows import Rows, median, say, verdict

ANSWER_BYTES = 230
"""As long as the API's own answer to one delivery."""

BARE = ("bare handler", "bare JSON")
CHANNELS = ("telegram", "vk", "sms")
SINGLE_WANTED, BULK_WANTED = 0.5, 5.0


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn (2)")
    parser.add_argument("--rounds", type=int, default=8, help="how many turns each has (8)")
    parser.add_argument("--connections", type=int, default=64, help="of the load generator (64)")
    parser.add_argument("--lines", type=int, default=1000, help="deliveries in one bulk request (1000)")
    parser.add_argument("--due", choices=["now", "later"], default="later", help="when they are to be sent (later)")


@dataclass(frozen=True, slots=True)
class Contender:
    """Who is asked for what. `each`: deliveries in one request."""

    name: str
    url: str
    body: bytes
    connections: int
    each: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Deliveries per second, and how busy (share of a core) the server's process and Valkey were."""

    rate: float
    server: float
    store: float


async def measure(arguments: Namespace, rows: Rows) -> None:
    turns: dict[str, list[Turn]] = defaultdict(list)
    for number in range(arguments.rounds):
        async for contender, turn in one_round(arguments):
            turns[contender.name].append(turn)
            say(f"{number + 1}/{arguments.rounds} {contender.name}: {turn.rate:,.0f}/s")
    show(turns, rows)


async def one_round(arguments: Namespace) -> AsyncIterator[tuple[Contender, Turn]]:
    async with ground() as place:
        api, facts = await place.start_verb("serve")
        bare = await place.start("bare", "bench.baselines.aiohttp", str(ANSWER_BYTES))
        for contender in contenders_of((await bare.facts(START))["http"], facts["http"], arguments):
            server = bare if contender.name in BARE else api
            yield contender, await one_turn(place, contender, server, arguments.seconds)


def contenders_of(bare: str, api: str, arguments: Namespace) -> Sequence[Contender]:
    body = json.dumps(delivery(arguments.due == "later"), ensure_ascii=False).encode()
    lines = (body + b"\n") * arguments.lines
    path = "/v1/deliveries"
    return (
        Contender("bare handler", bare + path, body, arguments.connections),
        Contender("bare JSON", bare + "/json", body, arguments.connections),
        Contender("one by one", api + path, body, arguments.connections),
        Contender("one client", api + path, body, 1),
        Contender("bulk", f"{api}{path}/bulk", lines, 1, arguments.lines),
    )


def delivery(later: bool) -> Mapping[str, Any]:
    at = (datetime.now(UTC) + timedelta(days=30)).isoformat() if later else None
    recipient = {"id": 1, "name": "Петров П. П.", "contacts": {channel: address(channel, 1) for channel in CHANNELS}}
    return {"sender": {"id": 42, "name": "Иванов И. И."}, "text": SHORT, "recipients": [recipient], "deliver_at": at}


async def one_turn(place: Ground, contender: Contender, server: Child, seconds: float) -> Turn:
    file = place.directory / "body"
    file.write_bytes(contender.body)
    words = (contender.url, str(contender.connections), str(seconds))
    before = cpu_of(server.pid), cpu_of(place.store.pid)
    load = await Child.start("load", python("bench.delivery.load", *words), {"BENCH_BODY": str(file)}, place.directory)
    try:
        facts = await load.facts(within=seconds + START)
    finally:
        await load.stop()
    after = cpu_of(server.pid), cpu_of(place.store.pid)
    busy = [(late - early) / seconds for early, late in zip(before, after, strict=True)]
    return Turn(facts["answers"] * contender.each / facts["seconds"], *busy)


def show(turns: Mapping[str, Sequence[Turn]], rows: Rows) -> None:
    """Medians. A ratio is of two turns of one round: the machine may be another one a minute later. `server_us` is what
    one delivery costs the server's process.
    """
    for name, own in turns.items():
        rows.show(
            {
                "system": name,
                "deliveries_per_s": round(median([turn.rate for turn in own])),
                "to_bare": round(_ratio(own, turns["bare handler"]), 2),
                "to_bare_json": round(_ratio(own, turns["bare JSON"]), 2),
                "to_one_client": round(_ratio(own, turns["one client"]), 2),
                "to_one_by_one": round(_ratio(own, turns["one by one"]), 2),
                "server_us": round(1e6 * median([turn.server / turn.rate for turn in own]), 1),
                "server_cpu_percent": round(100 * median([turn.server for turn in own])),
                "store_cpu_percent": round(100 * median([turn.store for turn in own])),
            }
        )
    single, bulk = _ratio(turns["one by one"], turns["bare handler"]), _ratio(turns["bulk"], turns["one client"])
    verdict("one by one to bare handler", single, f"≥ {SINGLE_WANTED}", single >= SINGLE_WANTED)
    verdict("one client, bulk to one by one", bulk, f"≥ {BULK_WANTED:g}", bulk >= BULK_WANTED)


def _ratio(ours: Sequence[Turn], theirs: Sequence[Turn]) -> float:
    return median([own.rate / other.rate for own, other in zip(ours, theirs, strict=True)])
