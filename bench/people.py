"""bench people: the directory and the rules of sending.

import     a CSV file with many people, while another client sends PINGs: the whole time, the longest script, how long
           the other client waits
expansion  one delivery to a supergroup, compared with the same delivery with inline people. No courier runs: the time
           is that of the POST, until the delivery is stored with all parcels. Each member is in two groups, so that
           repeated members are found
quota      what the check of a quota adds to an enqueue: without a role, with a quota, and with a role that is read from
           the directory. `Sending` is called directly, by many callers at a time; each sender sends four times, as many
           as a trainer may

Ways are measured in turn, because the speed of the machine changes.
"""

import asyncio
import itertools
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bench import Parts, declare_parts, measure_parts
from bench.harness.delivery_samples import TENANT, TEXT, address, recipient_of
from bench.harness.environment import API_KEY, START_TIMEOUT, Environment, environment
from bench.harness.measurements import LONG_SCRIPT_US, latency_columns, script_timings, server_cpu_seconds
from bench.harness.report import Rows, log_progress, median, report_target
from bench.queue.queue_environment import PROGRAMS, values_between
from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.command import CommandFailed
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.model.delivery import NewDelivery, Quota, Sender
from core.orders import Caller, Order, Sending, SendingPolicy
from core.redis.store import Store


@dataclass(frozen=True, slots=True)
class PeopleSizes:
    """`imported`: people in the file. `members`: people of the supergroup; `per_group`: of each of its groups. `sends`:
    deliveries of each way in a round.
    """

    imported: int = 100_000
    members: int = 10_000
    per_group: int = 250
    expansions: int = 7
    sends: int = 8_000
    rounds: int = 5


FULL = PeopleSizes()
SHORT = PeopleSizes(imported=500, members=200, per_group=50, expansions=2, sends=100, rounds=1)


CHANNELS = ("telegram", "sms")
CSV = "text/csv; charset=utf-8"


def name(number: int) -> str:
    """Return a name in ASCII: 10,000 inline people must fit into the 1 MiB of a request."""
    return f"Anna {number}"


def contacts(number: int) -> dict[str, str]:
    return {channel: address(channel, number) for channel in CHANNELS}


def people_csv(count: int) -> bytes:
    """Return a file of `count` people with name, e-mail and two contacts."""
    header = ["id", "name", "email", "role", *(f"contacts.{channel}" for channel in CHANNELS)]
    return csv_file(header, (person_row(number) for number in range(count)))


def person_row(number: int) -> Sequence[str]:
    return [str(number), name(number), f"p{number}@example.org", "student", *contacts(number).values()]


def csv_file(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in (header, *rows)).encode()


async def import_csv(api: HttpClient, kind: str, content: bytes) -> None:
    """Import a file. Raises CommandFailed if it is refused."""
    result: JsonObject = await api.upload("/v1/import", ClientUpload(content, CSV), {"kind": kind})
    if "created" not in result:
        raise CommandFailed(str(result))


async def start_api(env: Environment) -> HttpClient:
    """Starts an API process and returns a client of it."""
    _, facts = await env.start_command("serve")
    return HttpClient(facts["http"], API_KEY)


LONGEST_MS, PING_MS = 10.0, 10.0


@dataclass(slots=True)
class PingedBlock:
    """How long a block took, and how long another client waited for each PING meanwhile (ms)."""

    seconds: float = 0.0
    waits: Sequence[float] = ()


@asynccontextmanager
async def pinging(env: Environment) -> AsyncIterator[PingedBlock]:
    """Send PINGs from another process within the block; the result is filled when it ends."""
    pings = await env.start("pings", PROGRAMS, "pings", env.url)
    await pings.facts(START_TIMEOUT)
    block, began = PingedBlock(), time.time()
    yield block
    ended = time.time()
    await env.stop_child(pings)
    block.seconds = ended - began
    block.waits = values_between((await pings.facts(START_TIMEOUT))["waits"], began * 1000, ended * 1000)


async def measure_import(sizes: PeopleSizes, rows: Rows) -> None:
    """Measure the import of new people, then of the same file again, which changes nothing."""
    content = people_csv(sizes.imported)
    async with environment() as env:
        api = await start_api(env)
        for state in ("new", "existing"):
            await measure_one_import(env, api, state, sizes.imported, content, rows)


async def measure_one_import(
    env: Environment, api: HttpClient, state: str, count: int, content: bytes, rows: Rows
) -> None:
    async with script_timings(env.redis, LONG_SCRIPT_US) as timings, pinging(env) as pinged:
        await import_csv(api, "users", content)
    log_progress(f"import of {count:,} {state} people: {pinged.seconds:.1f} s")
    scripts = {"script_p50_ms": timings.median_ms, "longest_script_ms": timings.longest_ms}
    columns = latency_columns("ping", pinged.waits)
    seconds = {"seconds": round(pinged.seconds, 2), "people_per_s": round(count / pinged.seconds)}
    rows.show({"part": "import", "people": state, "n": count, **seconds, **scripts, **columns})
    report_target(
        f"import of {state} people, longest script, ms",
        timings.longest_ms,
        f"≤ {LONGEST_MS:g}",
        timings.longest_ms <= LONGEST_MS,
    )
    ping = float(columns["ping_p99_ms"] or 0)
    report_target("a PING meanwhile, p99 ms", ping, f"≤ {PING_MS:g}", ping <= PING_MS)


SUPERGROUP = "1 курс"
INLINE, EXPANDED = "inline people", "supergroup"
READS = ("HMGET", "HGET", "ZRANGE", "ZRANGEBYLEX", "ZSCORE")
"""The commands that read the directory."""

READ_MS = 10.0


@dataclass(frozen=True, slots=True)
class PostRun:
    """One POST. `ms`: until the response; `enqueue_ms`: of its script; `reads`: commands that read the directory, and
    `longest_read_ms` of them; `pings`: how long another client waited.
    """

    ms: float
    enqueue_ms: float
    reads: int
    longest_read_ms: float
    pings: Sequence[float]


async def measure_expansion(sizes: PeopleSizes, rows: Rows) -> None:
    async with environment() as env:
        api = await start_api(env)
        await fill(api, sizes)
        runs = await measure_in_turn(env, api, sizes)
        show_expansion(runs, sizes.members, rows)


async def fill(api: HttpClient, sizes: PeopleSizes) -> None:
    """Import people, overlapping groups and their supergroup."""
    groups = [str(number) for number in range(sizes.members // sizes.per_group)]
    members = (
        [groups[place % len(groups)], str(number)]
        for number in range(sizes.members)
        for place in (number // sizes.per_group, number // sizes.per_group + 1)
    )
    await import_csv(api, "users", people_csv(sizes.members))
    await import_csv(api, "groups", csv_file(["id"], ([group] for group in groups)))
    await import_csv(api, "members", csv_file(["group", "user"], members))
    await import_csv(api, "supergroups", csv_file(["id", "groups"], [[SUPERGROUP, ";".join(groups)]]))
    log_progress(f"{sizes.members:,} people in {len(groups)} groups, each in two of them")


def orders(count: int) -> Mapping[str, Mapping[str, Any]]:
    """Return the same delivery, written in two ways."""
    inline = [{"id": number, "name": name(number), "contacts": contacts(number)} for number in range(count)]
    common = {"sender": {"id": "dean"}, "text": TEXT, "channels": CHANNELS}
    return {
        INLINE: {**common, "recipients": inline},
        EXPANDED: {**common, "recipients": [{"supergroup": SUPERGROUP}]},
    }


async def measure_in_turn(env: Environment, api: HttpClient, sizes: PeopleSizes) -> Mapping[str, Sequence[PostRun]]:
    """Measure all ways in turn. The first run of each is not counted: it loads the functions."""
    runs: defaultdict[str, list[PostRun]] = defaultdict(list)
    for _ in range(sizes.expansions + 1):
        for way, order in orders(sizes.members).items():
            runs[way].append(await measure_post(env, api, order, sizes.members))
    return {way: found[1:] for way, found in runs.items()}


async def measure_post(env: Environment, api: HttpClient, order: Mapping[str, Any], count: int) -> PostRun:
    async with script_timings(env.redis) as timings, pinging(env) as pinged:
        accepted = await api.call("POST", "/v1/deliveries", order)
    if accepted["recipients"] != count:
        raise CommandFailed(f"{accepted['recipients']} recipients instead of {count}")
    enqueues = timings.of("enqueue")
    if len(enqueues) != 1:
        raise CommandFailed(f"{len(enqueues)} enqueue scripts instead of one")
    reads = [took for verb in READS for took in timings.by_verb[verb]]
    longest = max(reads, default=0) / 1000
    return PostRun(pinged.seconds * 1000, enqueues[0] / 1000, len(reads), longest, pinged.waits)


def show_expansion(runs: Mapping[str, Sequence[PostRun]], count: int, rows: Rows) -> None:
    """Show the medians, and the maximum of the reads."""
    for way, found in runs.items():
        ratios = [own.ms / other.ms for own, other in zip(found, runs[INLINE], strict=True)]
        rows.show(
            {
                "part": "expansion",
                "recipients": way,
                "n": count,
                "post_ms": round(median([run.ms for run in found]), 1),
                "to_inline": round(median(ratios), 2),
                "enqueue_scripts": 1,
                "enqueue_ms": round(median([run.enqueue_ms for run in found]), 2),
                "reads": round(median([run.reads for run in found])),
                "longest_read_ms": max(run.longest_read_ms for run in found),
                **latency_columns("ping", [wait for run in found for wait in run.pings]),
            }
        )
    longest = max(run.longest_read_ms for run in runs[EXPANDED])
    report_target("expansion, longest read of the directory, ms", longest, f"≤ {READ_MS:g}", longest <= READ_MS)


LIMIT = 4
RULES = SendingPolicy({"trainer": Quota(LIMIT, timedelta(days=1))})
ONE_CHANNEL = ("telegram",)
_CALLERS = 32
_MONTH = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Way:
    """One kind of sender. An administrator's order names the role itself; for others the directory is asked."""

    name: str
    role: str | None
    is_admin: bool


FREE = Way("no role", None, is_admin=True)
WAYS = (
    FREE,
    Way("quota", "trainer", is_admin=True),
    Way("no role, directory asked", None, is_admin=False),
    Way("quota, directory asked", "trainer", is_admin=False),
)


@dataclass(frozen=True, slots=True)
class SendRun:
    """Deliveries per second, and µs of the server's CPU for each."""

    rate: float
    server_us: float


async def measure_quota(sizes: PeopleSizes, rows: Rows) -> None:
    runs: defaultdict[str, list[SendRun]] = defaultdict(list)
    async with environment() as env, open_sending(env) as sending:
        senders = itertools.count(1)
        for _ in range(sizes.rounds + 1):
            for way in WAYS:
                runs[way.name].append(await measure_sends(env, sending, way, senders, sizes.sends))
    show_quota({name: found[1:] for name, found in runs.items()}, sizes.sends, rows)


@asynccontextmanager
async def open_sending(env: Environment) -> AsyncIterator[Sending]:
    store = await Store.open(f"{env.url}?client_name=bench")
    try:
        yield Sending(store, Deliveries(store, Channels(store)), Directory(store), RULES)
    finally:
        await store.close()


async def measure_sends(env: Environment, sending: Sending, way: Way, senders: Iterator[int], count: int) -> SendRun:
    caller, pending = Caller(TENANT, is_admin=way.is_admin), quota_orders(way, senders, count)

    async def send_all() -> None:
        for order in pending:
            await sending.send(order, caller)

    cpu, began = await server_cpu_seconds(env.redis), time.perf_counter()
    await asyncio.gather(*(send_all() for _ in range(_CALLERS)))
    seconds, used = time.perf_counter() - began, await server_cpu_seconds(env.redis) - cpu
    log_progress(f"{way.name}: {count / seconds:,.0f}/s, {used / count * 1e6:.0f} µs of the server each")
    return SendRun(count / seconds, used / count * 1e6)


def quota_orders(way: Way, senders: Iterator[int], count: int) -> Iterator[Order]:
    """Return `LIMIT` orders of each sender, due in a month."""
    recipients = [recipient_of(1, ONE_CHANNEL)]
    due = datetime.now(UTC) + _MONTH
    for _ in range(count // LIMIT):
        sender = Sender(next(senders), role=way.role)
        for _ in range(LIMIT):
            yield Order(NewDelivery(TENANT, sender, TEXT, (), ONE_CHANNEL, deliver_at=due), recipients)


def show_quota(runs: Mapping[str, Sequence[SendRun]], count: int, rows: Rows) -> None:
    """Show the medians. A ratio compares two ways of the same round."""
    for name, found in runs.items():
        pairs = list(zip(found, runs[FREE.name], strict=True))
        rows.show(
            {
                "part": "quota",
                "sender": name,
                "n": count,
                "deliveries_per_s": round(median([run.rate for run in found])),
                "to_no_role": round(median([own.rate / free.rate for own, free in pairs]), 2),
                "server_us": round(median([run.server_us for run in found]), 1),
                "server_us_more": round(median([own.server_us - free.server_us for own, free in pairs]), 1),
            }
        )


PARTS: Parts[PeopleSizes] = {
    "import": measure_import,
    "expansion": measure_expansion,
    "quota": measure_quota,
}


def declare_people(parser: ArgumentParser) -> None:
    declare_parts(parser, PARTS, "everything in half a minute")


async def measure_people(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    await measure_parts(PARTS, arguments.parts, sizes, rows)
