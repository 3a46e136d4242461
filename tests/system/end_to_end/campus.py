"""A whole installation for a university: all processes of Ada, which can be killed together or one by one.

API ─▶ server ─▶ couriers ─▶ sandbox in the test process ─▶ bots ─▶ server
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from cli.processes.embedded_valkey import free_port
from tests.support.waiting import until
from tests.system.crash.api_client import KEY, ApiClient
from tests.system.crash.installation import Installation
from tests.system.crash.process import AdaProcess

Json = dict[str, Any]

COURIERS = ("telegram", "vk", "sms", "email", "telegram-bot")
API, BOT, SCENARIOS = "serve", "bot telegram", "scenarios"
PROCESSES: Mapping[str, tuple[str, ...]] = {
    API: ("serve",),
    BOT: ("bot", "telegram"),
    SCENARIOS: ("scenarios",),
    **{f"courier {name}": ("courier", name) for name in COURIERS},
}
"""Name → arguments of each process."""


class Campus:
    """All processes have the same `settings`; those that change hold from the next start."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.sandbox = installation.sandbox
        address, secret = f"127.0.0.1:{free_port()}", "university"
        self.api: ApiClient = installation.client_at(f"http://{address}")
        self.inbound_sms = f"http://{address}/v1/inbound/sms?secret={secret}&from=%p&to=%P&text=%b&time=%t&id=%I"
        self.settings = {
            "ADA_HTTP": address,
            "ADA_API_KEY": KEY,
            "ADA_SMS_CALLBACK_URL": f"http://{address}",
            "ADA_INBOUND_SMS_SECRET": secret,
            "ADA_QUIET_HOURS": "off",
        }
        self._processes: dict[str, AdaProcess] = {}

    # processes

    async def start(self, *names: str) -> None:
        """Starts these processes, all by default; returns when they are ready."""
        for name in names or PROCESSES:
            self._processes[name] = self.installation.start(*PROCESSES[name], **self.settings)
        await asyncio.gather(*(self._processes[name].ready() for name in names or PROCESSES))

    def kill(self, *names: str) -> None:
        """Sends SIGKILL to these processes, all by default."""
        for name in names or PROCESSES:
            self._processes[name].kill()

    async def kill_and_start(self, *names: str) -> None:
        self.kill(*names)
        await self.start(*names)

    async def kill_and_start_everything(self) -> None:
        """Kills all processes and the server, and starts them again on the same data."""
        self.kill()
        self.installation.server.kill()
        self.installation.server.start()
        await self.start()

    # the API

    async def post(self, body: Json) -> tuple[int, Json]:
        """Posts a delivery; returns status and JSON."""
        return await self.api.post(body)

    async def finished(self, delivery_id: str, within: float = 60) -> Json:
        """Waits until the delivery is finished; returns its history."""
        return await until(lambda: self._history_if_finished(delivery_id), within=within, every=0.1)

    async def _history_if_finished(self, delivery_id: str) -> Json:
        status, history = await self.api.request("GET", f"/v1/deliveries/{delivery_id}?limit=10000")
        assert status == 200, history
        return dict(history) if history["finished_at"] else {}

    # the people

    def copies(self, text: str) -> Counter[tuple[str, str]]:
        """(channel, address) → number of messages with this text that arrived there."""
        return Counter((one.channel, one.address) for one in self.sandbox.state.inbox() if one.text == text)
