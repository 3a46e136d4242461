"""`serve --processes N`: workers that share a port, are restarted when they die, and end together."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector

from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

WORKERS = 2
LISTENS = "0A"
"""The state of a socket in /proc/net/tcp."""
METRICS_KEY = "of-prometheus"
COUNTER = 'ada_http_requests_total{method="GET",route="/livez",status="200"} '


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    """Each request has a connection of its own, so the kernel chooses a worker for each."""
    async with ClientSession(connector=TCPConnector(force_close=True)) as session:
        yield session


def start(server: Server, directory: Path, address: str = "127.0.0.1:0", *args: str) -> AdaProcess:
    environment = {"ADA_REDIS_URL": server.url, "ADA_DATA": str(directory / "data"), "ADA_HTTP": address}
    environment["ADA_METRICS_KEY"] = METRICS_KEY
    return AdaProcess(("serve", *args), environment, directory / f"serve-{len(args)}.log")


def workers_of(url: str) -> set[int]:
    """The process ids of the workers that listen at this address."""
    port = f"{int(url.rpartition(':')[2]):04X}"
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{one[9]}]" for one in sockets if one[1].endswith(f":{port}") and one[3] == LISTENS}
    return {int(process.name) for process in Path("/proc").glob("[0-9]*") if listening & set(files_of(process))}


def files_of(process: Path) -> list[str]:
    """What the descriptors of a process name."""
    found = []
    with suppress(OSError):  # it has just ended
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found.append(str(descriptor.readlink()))
    return found


async def is_alive(session: ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/livez") as response:
            return response.status == 200
    except ClientError:
        return False


async def counted(session: ClientSession, url: str) -> int:
    """Requests of all workers, as any one of them reports."""
    async with session.get(f"{url}/metrics", headers={"Authorization": f"Bearer {METRICS_KEY}"}) as response:
        lines = (await response.text()).splitlines()
    return sum(int(float(line.removeprefix(COUNTER))) for line in lines if line.startswith(COUNTER))


async def test_a_killed_worker_is_restarted_while_the_others_serve_and_all_end_on_sigterm(
    server: Server, session: ClientSession, tmp_path: Path
) -> None:
    process = start(server, tmp_path, "127.0.0.1:0", "--processes", str(WORKERS))
    try:
        url = (await process.ready())["http"]
        before = workers_of(url)
        assert len(before) == WORKERS
        assert all([await is_alive(session, url) for _ in range(20)])
        assert [await counted(session, url) for _ in range(5)] == [20] * 5, "every worker reports the sum of all"

        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{killed}").exists())  # its socket is closed then
        assert all([await is_alive(session, url) for _ in range(20)]), "the other worker goes on"
        await until(lambda: len(workers_of(url) - before) == 1)
        await until(lambda: process.output.count("| ready") == WORKERS + 1)
        assert all([await is_alive(session, url) for _ in range(20)])
        assert await counted(session, url) == 60, "the requests of the dead worker still count"

        process.terminate()
        assert await process.wait() == 0
        assert workers_of(url) == set()
        assert not await is_alive(session, url)
    finally:
        process.kill()


async def test_a_port_that_another_program_uses_is_refused_once_and_by_name(server: Server, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        for args in ((), ("--processes", "2")):
            process = start(server, tmp_path, address, *args)
            assert await process.wait() == 1
            assert process.output.count(f"cannot listen on {address}") == 1


async def test_the_number_of_processes_must_be_positive(server: Server, tmp_path: Path) -> None:
    process = start(server, tmp_path, "127.0.0.1:0", "--processes", "0")
    assert await process.wait() != 0
    assert "--processes must be at least 1" in process.output


def test_what_a_killed_process_had_in_progress_is_counted_no_more(tmp_path: Path) -> None:
    """Its requests were real, so their count stays."""
    program = (
        "import os, sys; from delivery.http.metrics import Metrics; found = Metrics();"
        " (found.streams.inc(), found.accepted.inc(), os.kill(os.getpid(), 9)) if sys.argv[1:] else None;"
        " print(found.render().decode())"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    assert subprocess.run([*command, "killed"], env=environment, cwd=ROOT).returncode == -9
    figures = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "ada_deliveries_accepted_total 1.0" in figures
    assert "ada_http_streams 1.0" not in figures
