"""A bot whose processes a test can kill, and people who write to it in VK."""

from pathlib import Path
from typing import Any

from core.queue import QueueClient
from core.updates.events import Events, identity, person_of
from scenarios.execution.runs import run_id
from scenarios.inspection.runs import RunReader, RunView
from scenarios.stores.forms import Forms
from tests.scenarios.bot_folder import BotFolder
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import VK, Installation
from tests.system.crash.process import AdaProcess

WITHIN = 60.0


class BotInProcesses(BotFolder):
    """The folder of a bot, and the processes that run it."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        super().__init__(folder)
        self.installation = installation
        self._reader = RunReader(installation.core.store)

    def start(self, **settings: str) -> AdaProcess:
        """Starts a process of the scenarios; does not wait until it is ready."""
        own = {"ADA_SCENARIOS": str(self.folder), "ADA_BOT_TENANT": TENANT, "ADA_BOT_TOKEN": ""}
        return self.installation.start("scenarios", **own, **settings)

    async def says(self, number: int, text: str) -> str:
        """Person `number` writes a text, which is the same event when it is written again; returns the id of its
        run.
        """
        person = VK.address(number)
        event = {"id": f"{text}{number}", "channel": "vk", "user_id": person, "chat_id": person, "event_text": text}
        await Events(QueueClient(self.installation.core.store), TENANT).put("test", event)
        return run_id(TENANT, identity(TENANT, {**event, "source": "test"}), person_of(event), 1)

    async def is_over(self, run: str) -> bool:
        """Also while the server is down, it answers in time."""
        if not await self.installation.core.store.command("EXISTS", f"run:{{0}}:{run}"):
            return False
        return (await self.read(run)).state == "over"

    async def over(self, run: str) -> RunView:
        await until(lambda: self.is_over(run), within=WITHIN, every=0.05)
        return await self.read(run)

    async def read(self, run: str) -> RunView:
        return await self._reader.read(TENANT, run)

    async def is_idle(self) -> bool:
        """Whether no task is under way."""
        states = await self.installation.core.store.command("HGETALL", "queue:{0}:states")
        return not any(int(number) for name, number in states.items() if name.endswith(":taken"))

    async def remembered(self, number: int) -> Any:
        """The variables of person `number`."""
        found = await Forms(self.installation.core.store).of_person(TENANT, f"vk:{VK.address(number)}")
        return found.variables

    def texts(self, number: int) -> list[str]:
        """What person `number` has got, in order."""
        address = VK.address(number)
        return [message.text for message in self.installation.state.inbox("vk") if message.address == address]


def storing(step: int, state: str = "completed") -> bytes:
    """Bytes in the request that stores how a step ended."""
    return f'[[0,{step}],"{state}"'.encode()
