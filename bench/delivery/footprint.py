"""bench footprint, idle and memory: what an installation and its deliveries occupy.

`footprint`: memory and start of `./ada up`, with everything simulated (also with ADA_PROCESSES=few) and with one
channel, and of two commands. `idle`: what an idle fleet costs. `memory`: bytes of a scheduled delivery.

Memory is PSS: what a process has alone and its share of what it has with others. `--beside COMMIT` measures an earlier
commit, too, in turn with this one, with the libraries that are installed here.
"""

import asyncio
import json
import re
import subprocess
import tarfile
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

from bench.harness.delivery_samples import order, recipient_of
from bench.harness.environment import (
    ROOT,
    START_TIMEOUT,
    ChildProcess,
    Environment,
    clean_environment,
    environment,
    python,
)
from bench.harness.measurements import ProcessUsage, commands_within, process_tree, process_usage, server_size
from bench.harness.report import Rows, log_progress, median, report_target
from cli.command import CommandFailed
from cli.processes.supervisor import Announcement
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.delivery import NewDelivery
from core.redis.store import Store

THIS = "this"
EVERYTHING, FEW, ONE_CHANNEL = "everything", "everything in few processes", "one channel"
MEMORY_TARGETS = {EVERYTHING: 430.0, FEW: 350.0, ONE_CHANNEL: 200.0}
START_TARGET, COMMAND_TARGET = 4.0, 150.0
COMMANDS = ("--help", "show --help")
_TIMES = 7
_SETTLE = 3.0
"""Seconds after the start in which the processes open connections and go to sleep."""
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def declare_footprint(parser: ArgumentParser) -> None:
    parser.add_argument("--beside", metavar="COMMIT", help="also measure this earlier commit of the repository")


async def measure_footprint(arguments: Namespace, rows: Rows) -> None:
    with tempfile.TemporaryDirectory(prefix="ada-bench-") as directory:
        systems = {THIS: ROOT}
        if arguments.beside:
            systems[arguments.beside] = unpack(arguments.beside, Path(directory) / "code")
        async with gateway(Path(directory)) as sms:
            for fleet, settings in ((EVERYTHING, {}), (FEW, {"ADA_PROCESSES": "few"}), (ONE_CHANNEL, sms)):
                for system, code in systems.items():
                    if fleet == FEW and system != THIS:
                        continue  # it may not know the setting
                    log_progress(f"./ada up, {fleet}: {system}")
                    await measure_fleet(fleet, settings, system, code, rows)
        for command in COMMANDS:
            for system, code in systems.items():
                measure_command(command, system, code, rows)


def unpack(commit: str, directory: Path) -> Path:
    """Return a directory with the code of a commit, compiled. Raises CommandFailed."""
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise CommandFailed(f"git does not have {commit}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(directory, filter="data")
    subprocess.run([*python("compileall"), "-q", "-j", "0", directory], check=False)
    return directory


@asynccontextmanager
async def gateway(directory: Path) -> AsyncIterator[Mapping[str, str]]:
    """Start a simulated SMS gateway beside the fleets; yield the settings of this one channel."""
    sandbox = await ChildProcess.start("sandbox", python("cli", "sandbox", "--json"), {}, directory)
    try:
        settings = (await sandbox.facts(START_TIMEOUT))["environment"]
        yield {name: value for name, value in settings.items() if name.startswith("ADA_SMS_")}
    finally:
        await sandbox.stop()


async def measure_fleet(fleet: str, settings: Mapping[str, str], system: str, code: Path, rows: Rows) -> None:
    began = time.monotonic()
    async with running(settings, code) as up:
        seconds, used = time.monotonic() - began, process_usage()
        members = process_tree(up.pid, used)
        cpu = sum(used[pid].seconds for pid in members)
        await asyncio.sleep(_SETTLE)
        sizes = sizes_by_name({pid: used[pid].command for pid in sorted(members)})
    for name, megabytes in sizes.items():
        rows.show({"fleet": fleet, "system": system, "process": name, "pss_mb": round(megabytes, 1)})
    total = sum(sizes.values())
    rows.show(
        {"fleet": fleet, "system": system, "pss_mb": round(total), "start_s": round(seconds, 1), "cpu_s": round(cpu, 1)}
    )
    if system == THIS:
        target = MEMORY_TARGETS[fleet]
        report_target(f"memory with {fleet}, MB", total, f"≤ {target:g}", total <= target)
        report_target(f"start with {fleet}, s", seconds, f"≤ {START_TARGET:g}", seconds <= START_TARGET)


@asynccontextmanager
async def running(settings: Mapping[str, str], code: Path) -> AsyncIterator[ChildProcess]:
    """Start `./ada up` of this code with data of its own, and yield it when it is up."""
    with tempfile.TemporaryDirectory(prefix="ada-bench-") as directory:
        environment = {"ADA_DATA": directory, "ADA_HTTP": "127.0.0.1:0", "PYTHONPATH": str(code), **settings}
        up = await ChildProcess.start(
            "up", python("cli", "up", "--json"), environment, Path(directory), parse_line=parse_ready
        )
        try:
            await up.facts(2 * START_TIMEOUT)
            yield up
        finally:
            await up.stop()


def sizes_by_name(commands: Mapping[int, str]) -> Mapping[str, float]:
    """Return the memory in MB of processes by name; those of one name are added."""
    sizes: dict[str, float] = {}
    for pid, command in commands.items():
        name = process_name(command)
        sizes[name] = sizes.get(name, 0.0) + pss_mb(pid)
    return sizes


def pss_mb(pid: int) -> float:
    """Return the memory of a process. Raises CommandFailed where the system does not say it."""
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError as fault:
        raise CommandFailed(f"the memory of process {pid} cannot be read; this needs Linux ({fault})") from None
    return int(found[1]) / 1024 if found else 0.0


def measure_command(command: str, system: str, code: Path, rows: Rows) -> None:
    environment, times = clean_environment({"PYTHONPATH": str(code)}), []
    for _ in range(_TIMES):
        began = time.monotonic()
        subprocess.run([*python("cli"), *command.split()], env=environment, capture_output=True, cwd=code, check=True)
        times.append((time.monotonic() - began) * 1000)
    milliseconds = median(times)
    rows.show({"command": command, "system": system, "p50_ms": round(milliseconds), "least_ms": round(min(times))})
    if system == THIS:
        report_target(f"./ada {command}, ms", milliseconds, f"≤ {COMMAND_TARGET:g}", milliseconds <= COMMAND_TARGET)


CPU_TARGET, COMMANDS_TARGET = 1.0, 1.0
_SETTLE_IDLE = 5.0
"""Seconds after the start in which the processes open connections and go to sleep."""


def declare_idle(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to measure (60)")
    parser.add_argument("--shards", type=int, default=1, help="ADA_SHARDS (1)")


async def measure_idle(arguments: Namespace, rows: Rows) -> None:
    """Show what an idle fleet costs: `./ada up` with the sandbox and every courier, and nothing to do."""
    async with environment(shards=arguments.shards) as env:
        fleet = await start_fleet(env)
        await asyncio.sleep(min(_SETTLE_IDLE, arguments.seconds))
        before, began = process_usage(), time.monotonic()
        commands = await commands_within(env.redis, arguments.seconds)
        seconds, after = time.monotonic() - began, process_usage()
        shares = cpu_percentages(before, after, process_tree(fleet.pid, after), seconds)
    show_idle(rows, shares, commands / seconds)


async def start_fleet(env: Environment) -> ChildProcess:
    log_progress("starting ./ada up")
    fleet = await env.start("up", "cli", "up", "--json", parse_line=parse_ready)
    facts = await fleet.facts(2 * START_TIMEOUT)
    log_progress(f"up, with the couriers {facts['ready']['couriers']}")
    return fleet


def parse_ready(line: str) -> Announcement | None:
    """Return the facts of the line that `./ada up --json` prints when all processes are ready; else None."""
    try:
        facts: Announcement = json.loads(line)
    except ValueError:
        return None
    return facts if "ready" in facts else None


def cpu_percentages(
    before: Mapping[int, ProcessUsage], after: Mapping[int, ProcessUsage], members: set[int], seconds: float
) -> Mapping[str, float]:
    """Return percent of one core by process name; processes of one name are added."""
    shares: dict[str, float] = {}
    for pid in sorted(members):
        name = process_name(after[pid].command)
        share = 100 * (after[pid].seconds - (before[pid].seconds if pid in before else 0.0)) / seconds
        shares[name] = shares.get(name, 0.0) + share
    return shares


def process_name(command: str) -> str:
    """Return the CLI command, or what else the process is; the rest are shells that end a child with its parent."""
    if verbs := command.partition(" -m cli.shared_process ")[2]:
        return f"all {verbs.split()[0]}s"
    others = (name for name in ("valkey-server", "forkserver", "resource_tracker") if name in command)
    return command.partition(" -m cli ")[2].partition(" --")[0] or next(others, "parent watchers")


def show_idle(rows: Rows, shares: Mapping[str, float], commands_per_s: float) -> None:
    for name, share in shares.items():
        rows.show({"process": name, "cpu_percent": round(share, 3)})
    clients = sum(name.split()[0] in ("serve", "courier", "bot", "scenarios", "jobs") for name in shares)
    total, each = sum(shares.values()), commands_per_s / max(1, clients)
    rows.show({"process": "all", "cpu_percent": round(total, 3), "commands_per_s_each": round(each, 3)})
    report_target("CPU of all processes, % of a core", total, f"< {CPU_TARGET:g}", total < CPU_TARGET)
    report_target("commands per second and process", each, f"< {COMMANDS_TARGET:g}", each < COMMANDS_TARGET)


PHRASES = {"ascii": "There is no class with me today. ", "cyrillic": "Моей пары сегодня не будет. "}
LENGTH = 200
CHANNELS = (("telegram",), ("telegram", "vk", "sms"))
PAGE = 500
BYTES_TARGET = 1200


def declare_memory(parser: ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=20_000, help="deliveries of each kind (20000)")


async def measure_memory(arguments: Namespace, rows: Rows) -> None:
    """Show the bytes of a scheduled delivery in the server, its indexes included."""
    for letters, phrase in PHRASES.items():
        text = (phrase * LENGTH)[:LENGTH]
        for channels in CHANNELS:
            each = await bytes_of_each(text, channels, arguments.count)
            rows.show({"text": letters, "channels": len(channels), "n": arguments.count, "bytes": round(each)})
            report_target(
                f"bytes, {letters}, {len(channels)} channels", each, f"≤ {BYTES_TARGET}", each <= BYTES_TARGET
            )


async def bytes_of_each(text: str, channels: Sequence[str], count: int) -> float:
    """Subtracts what is there before the first delivery (scripts, connections)."""
    async with environment() as env:
        store = await Store.open(env.url)
        deliveries = Deliveries(store, Channels(store))
        await enqueue(deliveries, text, channels, 0, PAGE)
        before = (await server_size(env.redis)).bytes
        await enqueue(deliveries, text, channels, PAGE, PAGE + count)
        after = (await server_size(env.redis)).bytes
        await store.close()
        log_progress(f"{count:,} deliveries: {(after - before) / 2**20:.1f} MiB")
        return (after - before) / count


async def enqueue(deliveries: Deliveries, text: str, channels: Sequence[str], first: int, end: int) -> None:
    for start in range(first, end, PAGE):
        numbers = range(start, min(start + PAGE, end))
        await deliveries.enqueue_many([(scheduled(text, channels, number), None) for number in numbers])


def scheduled(text: str, channels: Sequence[str], number: int) -> NewDelivery:
    at = datetime.now(UTC) + timedelta(days=30, milliseconds=number)
    return order(text, [recipient_of(number, channels)], channels, at)
