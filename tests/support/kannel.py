"""A real Kannel for tests: bearerbox and smsbox on free ports, and a fake telephone network."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote_from_bytes, urlencode

import pytest
from aiohttp import ClientError, ClientSession
from yarl import URL

from cli.processes.embedded_valkey import free_port
from tests.support.waiting import until

USERNAME, PASSWORD = "ada", "secret"
_PORTS = ("admin", "box", "network", "http", "sendsms")

_CONFIGURATION = """
group = core
admin-port = {admin}
admin-interface = 127.0.0.1
admin-password = {password}
smsbox-port = {box}
smsbox-interface = 127.0.0.1
log-file = {directory}/bearerbox.log
log-level = 1
box-allow-ip = 127.0.0.1
sms-resend-freq = 1
store-type = file
store-location = {directory}/store

group = smsc
smsc = fake
smsc-id = fake
port = {network}
connect-allow-ip = 127.0.0.1

group = smsc
smsc = http
smsc-id = http
system-type = kannel
smsc-username = {username}
smsc-password = {password}
port = {http}
connect-allow-ip = 127.0.0.1
send-url = http://127.0.0.1:9/
allowed-smsc-id = http

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = {sendsms}
sendsms-interface = 127.0.0.1
http-request-retry = 60
http-queue-delay = 10
log-file = {directory}/smsbox.log
log-level = 1

group = sendsms-user
username = {username}
password = {password}
concatenation = true
max-messages = 10

group = sms-service
keyword = default
catch-all = true
get-url = "{inbound}"
max-messages = 0
omit-empty = true
concatenation = true
assume-plain-text = true
"""


@dataclass
class Kannel:
    """A running Kannel. `delivered` has one line for each SMS part that reached the network: sender, number, …"""

    directory: Path
    delivered: list[str] = field(default_factory=list)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    username: str = USERNAME
    password: str = PASSWORD
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in _PORTS})
    _network: asyncio.StreamWriter | None = None
    _reading: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Return the URL of sendsms."""
        return f"http://127.0.0.1:{self.ports['sendsms']}/cgi-bin/sendsms"

    async def start(self, inbound_url: str) -> None:
        """Start both boxes and wait until they are running."""
        configuration = self.directory / "kannel.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                **self.ports, directory=self.directory, username=USERNAME, password=PASSWORD, inbound=inbound_url
            )
        )
        await self._run("bearerbox", configuration)
        await self._wait_for_status("Status: running")
        await self._run("smsbox", configuration)
        await self._wait_for_status("smsbox:")

    async def connect_network(self) -> None:
        """Connect the telephone network; without it Kannel queues messages."""
        reader, self._network = await asyncio.open_connection("127.0.0.1", self.ports["network"])
        self._reading = asyncio.create_task(self._read_network(reader))
        await self._wait_for_status("(online")

    async def receive(self, sender: str, receiver: str, text: str) -> None:
        """Send an SMS from a telephone to the gateway. The text must have no line breaks."""
        assert self._network is not None
        self._network.write(f"{sender} {receiver} text {text}\n".encode())
        await self._network.drain()

    async def receive_ucs_2(self, sender: str, receiver: str, text: str) -> None:
        """Send an SMS in UCS-2, as telephones do with Cyrillic letters, through a second network."""
        known = {"username": USERNAME, "password": PASSWORD, "from": sender, "to": receiver, "coding": "2"}
        url = f"http://127.0.0.1:{self.ports['http']}/?{urlencode(known)}&charset=UTF-16BE&text="
        encoded = URL(url + quote_from_bytes(text.encode("utf-16-be")), encoded=True)
        async with ClientSession() as session, session.get(encoded) as response:
            assert response.status == 202, await response.text()

    async def stop(self) -> None:
        """Kill the processes that `start` started, the newer first."""
        if self._reading is not None:
            self._reading.cancel()
        if self._network is not None:
            self._network.close()
        for process in reversed(self.processes):
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _run(self, program: str, configuration: Path) -> None:
        quiet = asyncio.subprocess.DEVNULL
        self.processes.append(
            await asyncio.create_subprocess_exec(
                program, "-v", "4", str(configuration), stdout=quiet, stderr=quiet, cwd=self.directory
            )
        )

    async def _read_network(self, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            self.delivered.append(line.decode().rstrip("\n"))

    async def _status(self) -> str:
        url = f"http://127.0.0.1:{self.ports['admin']}/status.txt?password={PASSWORD}"
        try:
            async with ClientSession() as session, session.get(url) as response:
                return await response.text()
        except ClientError:
            return ""

    async def _wait_for_status(self, text: str) -> None:
        """Wait until Kannel's status page contains the text."""

        async def is_shown() -> bool:
            return text in await self._status()

        found: bool = await until(is_shown)
        assert found


@pytest.fixture
async def kannel(tmp_path: Path) -> AsyncIterator[Kannel]:
    """Start a Kannel with a connected network; its incoming messages are dropped."""
    missing = [program for program in ("bearerbox", "smsbox") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs the package kannel: {', '.join(missing)} not found")
    directory = tmp_path / "kannel"
    directory.mkdir()
    running = Kannel(directory)
    try:
        await running.start("http://127.0.0.1:9/")
        await running.connect_network()
        yield running
    finally:
        await running.stop()
