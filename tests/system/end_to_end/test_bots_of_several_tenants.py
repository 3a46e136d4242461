"""Bots of several tenants in one installation, over the real Bot API of the sandbox: one process of each kind serves
all, and nothing of one reaches another.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.harness.measurements import commands_within
from core.processes.register import BotFaults
from core.queue import Queue
from sandbox.bot_api.people_actions import PeopleActions
from sandbox.sandbox import Sandbox
from scenarios.stores.promo import Promos
from tests.scenarios.bot_folder import BotFolder
from tests.support.servers import Server
from tests.support.waiting import stays, until
from tests.system.crash.installation import Installation
from tests.system.crash.process import AdaProcess

PERSON = 100_001
SECONDS = 10.0
"""In which the commands of idle processes are counted."""
PROCESSES = (("scenarios",), ("bot", "telegram"), ("courier", "telegram-bot"))
BOT = """\
start:
  actions:
    - {type: set, variables: {person.visits: {add: 1}}}
    - {type: create_promo, promo_code: WELCOME, promo_name: NAME, permanent: true, chain: completed}
    - {type: send, text: "NAME {person.visits}", inline: [[{"Choose": choose}]], chain: any}
choose:
  actions:
    - {type: answer_press, text: "NAME knows"}
    - {type: ask, text: "NAME: which room?", save: person.room}
    - {type: send, text: "NAME room {answer}", chain: completed}
"""


def write_bot(root: Path, tenant: str, token: str = "") -> BotFolder:
    """Write the folder of a bot: all have the same names in them, and say another name."""
    folder = BotFolder(root / tenant)
    folder.write("variables.yaml", "person: {visits: {type: number, default: 0}, room: number}")
    folder.write("scenarios/s.yaml", BOT.replace("NAME", tenant))
    folder.write(".env", f"ADA_BOT_TOKEN={token or token_of(tenant)}\n")
    return folder.write("triggers.yaml", 'text: {exact: {"/start": s.start}}\ncallback: {exact: {choose: s.choose}}\n')


def token_of(tenant: str) -> str:
    return f"{5000 + ord(tenant[-1])}:sandbox"


class Chats:
    """What one person writes to the bots and sees of them."""

    def __init__(self, installation: Installation, processes: dict[str, AdaProcess]) -> None:
        self.installation = installation
        self.processes = processes
        self.bot_api = installation.sandbox.bot_api

    def people(self, tenant: str) -> PeopleActions:
        return self.bot_api.people_of(token_of(tenant))

    def texts(self, tenant: str) -> list[str]:
        return [one["text"] for one in self.people(tenant).shown(PERSON)["messages"] if one["from"] == "bot"]

    def write(self, tenant: str, text: str) -> None:
        self.people(tenant).write(PERSON, text)

    def press(self, tenant: str) -> str:
        shown = self.people(tenant).shown(PERSON)["messages"]
        message = next(one for one in reversed(shown) if one["from"] == "bot" and one.get("buttons"))
        return self.people(tenant).press(PERSON, message["id"], "Choose")

    async def reads(self, tenant: str, *texts: str) -> None:
        await until(lambda: self.texts(tenant) == list(texts), within=60)


@pytest.fixture
async def chats(own_server: Server, tmp_path: Path) -> AsyncIterator[Chats]:
    root = tmp_path / "bots"
    for tenant in ("school-A", "school-B"):
        write_bot(root, tenant)
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    installation = await Installation.open(own_server, sandbox, tmp_path)
    settings = {"ADA_SCENARIOS": str(root), "ADA_QUIET_HOURS": "off"}
    processes = {arguments[0]: installation.start(*arguments, **settings) for arguments in PROCESSES}
    await asyncio.gather(*(process.ready() for process in processes.values()))
    yield Chats(installation, processes)
    await installation.close()
    await sandbox.stop()


async def test_two_bots_with_the_same_names_and_the_same_person_mix_nothing(chats: Chats) -> None:
    for _ in range(2):
        chats.write("school-A", "/start")
    chats.write("school-B", "/start")
    await chats.reads("school-A", "school-A 1", "school-A 2")
    await chats.reads("school-B", "school-B 1")
    store = chats.installation.core.store
    for tenant in ("school-A", "school-B"):
        assert {one.name for one in await Promos(store, tenant).newest(10)} == {tenant}
    query = chats.press("school-B")
    await until(lambda: chats.people("school-B").answer(query), within=60)
    assert (chats.people("school-B").answer(query) or {})["text"] == "school-B knows"
    await chats.reads("school-B", "school-B 1", "school-B: which room?")
    chats.write("school-A", "101")  # no answer to the question of the other bot
    chats.write("school-B", "202")
    await chats.reads("school-B", "school-B 1", "school-B: which room?", "school-B room 202")
    assert chats.texts("school-A") == ["school-A 1", "school-A 2"]
    assert chats.bot_api.people.shown(PERSON)["messages"] == [], "the bot of no tenant says nothing"


async def test_a_revoked_token_and_broken_files_stop_nothing_of_another_bot(chats: Chats, tmp_path: Path) -> None:
    chats.bot_api.revoked.add(token_of("school-A"))
    faults = BotFaults(chats.installation.core.store)
    await until(lambda: "the bot of school-A has stopped" in chats.processes["bot"].output, within=60)
    (tmp_path / "bots" / "school-B" / "scenarios" / "s.yaml").write_text("start: {actions: [{type: sned}]}")
    await until(lambda: "stays active" in chats.processes["scenarios"].output, within=60)
    chats.write("school-B", "/start")
    await chats.reads("school-B", "school-B 1")
    parts = [one.part for one in await faults.of("school-A")]
    assert parts == ["bot telegram"]
    assert [one.part for one in await faults.of("school-B")] == []
    assert all(process.is_running for process in chats.processes.values())
    assert token_of("school-A") not in "".join(process.output for process in chats.processes.values())
    chats.bot_api.revoked.clear()
    write_bot(tmp_path / "bots", "school-A").write(".env", f"# new\nADA_BOT_TOKEN={token_of('school-A')}\nCRM=1\n")
    chats.write("school-A", "/start")
    await chats.reads("school-A", "school-A 1")
    assert await faults.of("school-A") == []


async def test_a_bot_that_comes_while_it_runs_is_served_until_its_folder_goes(chats: Chats, tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bots", "school-C").folder
    chats.write("school-C", "/start")
    await chats.reads("school-C", "school-C 1")
    folder.rename(tmp_path / "gone")
    for name in ("scenarios", "bot"):
        await until(lambda: "the bot of school-C is gone" in chats.processes[name].output, within=60)  # noqa: B023
    chats.write("school-C", "/start")
    await stays(lambda: chats.texts("school-C") == ["school-C 1"])
    chats.write("school-A", "/start")
    await chats.reads("school-A", "school-A 1")


async def test_ten_idle_bots_cost_as_much_as_two(chats: Chats, tmp_path: Path) -> None:
    redis, polled = chats.installation.core.redis, chats.installation.sandbox.state
    await chats_are_polled(chats, "school-A", "school-B")
    before = await commands_within(redis, SECONDS)
    calls = polled.counter("telegram-bot", "getUpdates")
    further = [f"school-{letter}" for letter in "CDEFGHIJ"]
    for tenant in further:
        write_bot(tmp_path / "bots", tenant)
    await chats_are_polled(chats, *further)
    await until(lambda: polled.counter("telegram-bot", "getUpdates") >= calls + len(further), within=60)
    assert before > 0, "commands are counted"

    async def costs_as_much() -> bool:
        return await commands_within(redis, SECONDS) <= 1.2 * before

    await until(costs_as_much, within=60)  # the couriers of new bots sign in meanwhile


async def chats_are_polled(chats: Chats, *tenants: str) -> None:
    """Wait until each bot has answered once, and all deliveries have ended."""
    for tenant in tenants:
        chats.write(tenant, "/start")
    for tenant in tenants:
        await chats.reads(tenant, f"{tenant} 1")
    await until(lambda: is_idle(chats), within=60)


async def is_idle(chats: Chats) -> bool:
    return (await Queue(chats.installation.core.store).inspector.stats()).taken == 0
