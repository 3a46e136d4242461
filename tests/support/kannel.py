"""A real Kannel for tests: bearerbox and smsbox on free ports, with a telephone network that remembers what it got."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession

from tests.support.waiting import until

USERNAME, PASSWORD = "ada", "secret"

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
opened-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = {sendsms}
sendsms-interface = 127.0.0.1
log-file = {directory}/smsbox.log
log-level = 1

group = sendsms-user
username = {username}
password = {password}
concatenation = true
max-messages = 10

group = sms-service
keyword = default
get-url = {inbound}
max-messages = 0
"""


@dataclass
class Kannel:
    """One running Kannel. `delivered` has a line for each SMS part that reached the network: sender, number, …"""

    directory: Path
    ports: dict[str, int]
    delivered: list[str] = field(default_factory=list)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    username: str = USERNAME
    password: str = PASSWORD
    _network: asyncio.StreamWriter | None = None
    _listening: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of sendsms."""
        return f"http://127.0.0.1:{self.ports['sendsms']}/cgi-bin/sendsms"

    async def start(self, inbound_url: str) -> None:
        """Start both boxes; comes back when sendsms answers."""
        configuration = self.directory / "kannel.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                **self.ports, directory=self.directory, username=USERNAME, password=PASSWORD, inbound=inbound_url
            )
        )
        await self._run("bearerbox", configuration)
        await self._comes("Status: running")
        await self._run("smsbox", configuration)
        await self._comes("smsbox:")

    async def connect_network(self) -> None:
        """Bring the telephone network up; without it Kannel queues."""
        reader, self._network = await asyncio.open_connection("127.0.0.1", self.ports["network"])
        self._listening = asyncio.create_task(self._listen(reader))
        await self._comes("(online")

    async def receive(self, sender: str, receiver: str, text: str) -> None:
        """Let a telephone write an SMS to the gateway (text without line breaks)."""
        assert self._network is not None
        self._network.write(f"{sender} {receiver} text {text}\n".encode())
        await self._network.drain()

    async def stop(self) -> None:
        """End the processes that `start` started, the younger first."""
        if self._listening is not None:
            self._listening.cancel()
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

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            self.delivered.append(line.decode().rstrip("\n"))

    async def _status(self) -> str:
        address = f"http://127.0.0.1:{self.ports['admin']}/status.txt?password={PASSWORD}"
        try:
            async with ClientSession() as session, session.get(address) as answer:
                return await answer.text()
        except ClientError:
            return ""

    async def _comes(self, words: str) -> None:
        """Wait until Kannel's status page has these words."""

        async def shown() -> bool:
            return words in await self._status()

        found: bool = await until(shown, within=20)
        assert found


def free_ports(*names: str) -> dict[str, int]:
    """Return a free port for each name; all are held until all are found."""
    with_names = [(name, socket.socket()) for name in names]
    for _, held in with_names:
        held.bind(("127.0.0.1", 0))
    ports = {name: held.getsockname()[1] for name, held in with_names}
    for _, held in with_names:
        held.close()
    return ports


@pytest.fixture
async def kannel(tmp_path: Path) -> AsyncIterator[Kannel]:
    """A Kannel whose network is up and whose incoming messages go nowhere."""
    missing = [program for program in ("bearerbox", "smsbox") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs the package kannel: {', '.join(missing)} not found")
    directory = tmp_path / "kannel"
    directory.mkdir()
    running = Kannel(directory, free_ports("admin", "box", "network", "sendsms"))
    try:
        await running.start("http://127.0.0.1:9/")
        await running.connect_network()
        yield running
    finally:
        await running.stop()
