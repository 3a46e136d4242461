"""bench footprint: memory and start of `./ada up`, with everything simulated (also with ADA_PROCESSES=few) and with one
channel, and of two commands.

Memory is PSS: what a process has alone and its share of what it has with others. `--beside COMMIT` measures an earlier
commit, too, in turn with this one, with the libraries that are installed here.
"""

import asyncio
import re
import subprocess
import tarfile
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

from bench.delivery.idle import parse_ready, process_name
from bench.harness.environment import ROOT, START_TIMEOUT, ChildProcess, clean_environment, python
from bench.harness.measurements import process_tree, process_usage
from bench.harness.report import Rows, log_progress, median, report_target
from cli.command import CommandFailed

THIS = "this"
EVERYTHING, FEW, ONE_CHANNEL = "everything", "everything in few processes", "one channel"
MEMORY_TARGETS = {EVERYTHING: 430.0, FEW: 350.0, ONE_CHANNEL: 200.0}
START_TARGET, COMMAND_TARGET = 4.0, 150.0
COMMANDS = ("--help", "show --help")
_TIMES = 7
_SETTLE = 3.0
"""Seconds after the start in which the processes open connections and go to sleep."""
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--beside", metavar="COMMIT", help="also measure this earlier commit of the repository")


async def measure(arguments: Namespace, rows: Rows) -> None:
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
