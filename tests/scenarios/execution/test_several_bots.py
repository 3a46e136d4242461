"""Several bots in one process: what one does, has and waits for is never another one's."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFound
from core.queue import QueueClient
from core.updates.events import Events, identity, person_of
from scenarios.execution.runs import run_id
from scenarios.inspection.bots import BotReader
from scenarios.inspection.run_listing import RunFilter
from scenarios.inspection.runs import RunReader
from scenarios.stores.forms import Forms
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.execution.conftest import PERSON, WITHIN, Installation, Running
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until

OTHER = "school-7"
BOT = """
main:
  actions:
    - {type: set, variables: {person.visits: {add: 1}}}
    - {type: send, text: "NAME {person.visits}", chain: completed}
order:
  actions:
    - {type: ask, text: "NAME: how many?", save: person.count, form: orders, hint: "NAME: a number, please"}
    - {type: send, text: "NAME ordered {answer}", chain: completed}
"""
TRIGGERS = 'text: {exact: {order: s.order}, "*": s.main}'
VARIABLES = "person: {visits: {type: number, default: 0}, count: number}"


def write(folder: BotFolder, name: str) -> BotFolder:
    """Write a bot; those of all tenants differ only in what they say."""
    folder.write("variables.yaml", VARIABLES).write("triggers.yaml", TRIGGERS)
    return folder.write("scenarios/s.yaml", BOT.replace("NAME", name))


async def put(stack: Stack, tenant: str, number: int, text: str = "x") -> str:
    """Put an event, the same for each tenant; return the id of its run."""
    event: dict[str, Any] = {"id": f"e{number}", "channel": "echo", "user_id": PERSON, "chat_id": PERSON}
    await Events(QueueClient(stack.store), tenant).put("@api", {**event, "event_text": text})
    stored = {**event, "source": "@api"}
    return run_id(tenant, identity(tenant, stored), person_of(stored), stack.store.shards)


async def both(installation: Installation, tmp_path: Path, **options: Any) -> Running:
    write(installation, "A")
    running = await installation.start(**options)
    await running.add(OTHER, write(BotFolder(tmp_path / "other"), "B").folder)
    return running


async def said(installation: Installation, *texts: str) -> None:
    await until(lambda: sorted(installation.texts) == sorted(texts), within=WITHIN)


async def test_the_same_events_of_the_same_person_are_answered_by_each_bot_from_what_it_remembers(
    installation: Installation, tmp_path: Path
) -> None:
    await both(installation, tmp_path)
    for number in (1, 2):
        for tenant in (TENANT, OTHER):
            await put(installation.stack, tenant, number)
    await put(installation.stack, OTHER, 3)
    await said(installation, "A 1", "A 2", "B 1", "B 2", "B 3")


async def test_an_answer_goes_to_the_question_of_its_own_bot(installation: Installation, tmp_path: Path) -> None:
    await both(installation, tmp_path)
    for tenant in (TENANT, OTHER):
        await put(installation.stack, tenant, 1, "order")
    await said(installation, "A: how many?", "B: how many?")
    await put(installation.stack, OTHER, 2, "7")
    await said(installation, "A: how many?", "B: how many?", "B ordered 7")
    await put(installation.stack, TENANT, 2, "many")
    await put(installation.stack, TENANT, 3, "4")
    texts = ("A: a number, please", "A ordered 4")
    await said(installation, "A: how many?", "B: how many?", "B ordered 7", *texts)
    forms = Forms(installation.stack.store)
    tables = {tenant: (await forms.table(tenant, "orders")).rows for tenant in (TENANT, OTHER)}
    assert {tenant: [row.answers for row in rows] for tenant, rows in tables.items()} == {
        TENANT: [{"count": 4}],
        OTHER: [{"count": 7}],
    }


async def test_runs_and_the_bot_in_force_are_shown_to_their_tenant_only(
    installation: Installation, tmp_path: Path
) -> None:
    await both(installation, tmp_path)
    store = installation.stack.store
    runs, bots = RunReader(store), BotReader(store)
    own, others = [await put(installation.stack, tenant, 1) for tenant in (TENANT, OTHER)]
    await said(installation, "A 1", "B 1")
    assert own != others
    with pytest.raises(NotFound):
        await runs.read(TENANT, others)
    assert [one.id for one in (await runs.page(OTHER, RunFilter()))[0]] == [others]
    folders = [(await bots.show(tenant)).folder for tenant in (TENANT, OTHER)]
    assert folders == [str(installation.folder), str(tmp_path / "other")]


async def test_an_event_waits_for_the_bot_of_its_tenant_and_no_other_one_handles_it(
    installation: Installation, tmp_path: Path
) -> None:
    write(installation, "A")
    running = await installation.start()
    await put(installation.stack, OTHER, 1)
    await put(installation.stack, TENANT, 1)
    await said(installation, "A 1")
    await running.add(OTHER, write(BotFolder(tmp_path / "other"), "B").folder)
    await said(installation, "A 1", "B 1")
    await running.process.remove(OTHER)
    await put(installation.stack, OTHER, 2)
    await put(installation.stack, TENANT, 2)
    await said(installation, "A 1", "B 1", "A 2")
    with pytest.raises(NotFound):
        await BotReader(installation.stack.store).show(OTHER)


async def test_mistakes_of_one_bot_and_a_fault_of_its_actions_leave_the_others_working(
    installation: Installation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await both(installation, tmp_path)
    (tmp_path / "other" / "scenarios" / "s.yaml").write_text("main: {actions: [{type: sned, text: x}]}")
    await until(lambda: "stays active" in caplog.text, within=WITHIN)
    (installation.folder / "scenarios" / "s.yaml").write_text(BOT.replace("NAME", "new A"))
    await until(lambda: "is active" in caplog.text, within=WITHIN)
    for tenant in (TENANT, OTHER):
        await put(installation.stack, tenant, 1)
    await said(installation, "new A 1", "B 1")


async def test_a_schedule_of_the_same_name_starts_the_scenario_of_each_bot_once(
    installation: Installation, tmp_path: Path
) -> None:
    other = BotFolder(tmp_path / "other")
    for folder, name in ((installation, "A"), (other, "B")):
        folder.write("schedule.yaml", 'hourly: {each: "0 * * * *", for: {chat: "5", channel: echo}, scenario: s.tell}')
        folder.write("scenarios/s.yaml", f'tell: {{actions: [{{type: send, text: "{name}"}}]}}')
    running = await installation.start()
    await running.add(OTHER, other.folder)
    await installation.pass_time(timedelta(hours=1))
    await said(installation, "A", "B")


async def test_a_busy_tenant_does_not_starve_another(installation: Installation, tmp_path: Path) -> None:
    stack = installation.stack
    await both(installation, tmp_path, concurrency=5)
    busy = Events(QueueClient(stack.store), TENANT)
    events = [{"id": f"b{one}", "channel": "echo", "user_id": f"b{one}", "event_text": "x"} for one in range(200)]
    await asyncio.gather(*(busy.put("@api", event) for event in events))
    await put(stack, OTHER, 1)
    await until(lambda: "B 1" in installation.texts, within=WITHIN)
    assert len(installation.texts) < 100
