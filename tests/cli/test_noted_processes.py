"""The entry of a process in the register, from its start to its end."""

import asyncio
import os
import re
import socket
from collections.abc import Sequence
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from cli.command import OPERATOR_NEEDED, CommandFailed
from cli.commands.installation.processes import describe
from cli.commands.parts.courier import deliver
from cli.commands.start.doctor import check_accounts, check_bots, check_parts
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.parts import UpNote, now_ms, start_verb, take_requests, write_note
from cli.processes.startup import StartAgain, run_with_restarts, stop_requested
from cli.services.accounts import names_of_accounts
from core.deliveries.channels import Channels
from core.errors import NotFound
from core.jobs import notices
from core.jobs.storage import tube_of
from core.model.durability import Durability
from core.model.parts import PartState, UpPart
from core.monitoring.overview import MatterKind, Overviews
from core.orders import series
from core.processes import (
    DataLoss,
    InstallationMark,
    ProcessRecord,
    ProcessRegister,
    ProcessState,
    UnservedTube,
    accept_loss,
    overview,
)
from core.processes.installation_mark import LossKind
from core.processes.register import command_of, faulty_parts
from core.queue import NewTask
from core.redis.cluster import ClusterNodes
from core.redis.store import Store
from core.updates import events, ingress
from core.updates.bot_calls import calls_tube
from core.webhooks import webhook
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from couriers.sending.interface import Halted
from couriers.sending.runtime import Runtime
from scenarios.actions import installed_actions
from scenarios.execution.schedules import schedules_tube
from scenarios.execution.step_executor import slow_tubes
from scenarios.sending import following
from tests.support.servers import Server
from tests.support.stack import HOUR, QUICK, FakeCourier, Stack, people
from tests.support.waiting import until

FIVE_MINUTES = timedelta(minutes=5)


SLOW = [tube.name for tube in slow_tubes(installed_actions().types)]


async def entries(stack: Stack) -> list[ProcessRecord]:
    return list(await ProcessRegister(stack.store).list(int(stack.now().timestamp() * 1000)))


async def unserved(stack: Stack) -> list[UnservedTube]:
    return list((await overview(stack.store, stack.queue, Channels(stack.store))).unserved)


async def test_a_courier_is_shown_with_its_throttle_and_leaves_the_reason_why_it_was_halted(
    stack: Stack, tmp_path: Path
) -> None:
    refused = asyncio.Event()
    halted = FakeCourier(respond=lambda _: Halted("the token is refused"), account="ada")
    async with noted_process(stack.store, "courier", "echo") as process:
        runtime = Runtime(stack.store, "echo", QUICK)
        await runtime.add(halted)
        working = asyncio.create_task(deliver(runtime, process, refused, tmp_path / "pulse"))
        (found,) = await until(lambda: _serving(stack, "echo"))
        assert (found.state, found.account, found.pid) == (ProcessState.RUNNING, "ada", os.getpid())
        await stack.queue.throttle("echo", "account:ada", HOUR)
        (view,) = (await overview(stack.store, stack.queue, Channels(stack.store))).processes
        assert "throttled by the provider (account) for 3" in describe(view, stack.now(), UTC)
        await stack.store.command("DEL", "queue:{0}:throttles:echo")
        await stack.deliver(*people(1))
        assert await working == OPERATOR_NEEDED
    (left,) = await entries(stack)
    assert (left.state, left.reason, left.command) == (
        ProcessState.HALTED,
        "the token is refused",
        "./ada courier echo",
    )
    waiting = await unserved(stack)
    assert [(one.tube, one.ready, one.command) for one in waiting] == [("echo", 1, "./ada courier echo")]


async def _serving(stack: Stack, tube: str) -> list[ProcessRecord]:
    return [one for one in await entries(stack) if tube in one.tubes and one.is_there]


async def test_a_process_that_ends_in_order_is_gone_and_a_new_one_removes_what_the_one_before_left(
    stack: Stack,
) -> None:
    for fault, state in (
        (CommandFailed("no such account", OPERATOR_NEEDED), ProcessState.HALTED),
        (CommandFailed("the provider is away"), ProcessState.FAILED),
        (RuntimeError("a bug"), ProcessState.FAILED),
    ):
        with pytest.raises(type(fault)):
            async with noted_process(stack.store, "bot", "vk"):
                raise fault
        (left,) = await entries(stack)
        assert (left.state, str(fault) in left.reason) == (state, True)
    (left,) = await entries(stack)
    await ProcessRegister(stack.store).write(replace(left, id="elsewhere", host="another machine"))
    async with noted_process(stack.store, "bot", "vk"):
        await until(lambda: _are(stack, {ProcessState.STARTING, ProcessState.FAILED}))
    assert [one.id for one in await entries(stack)] == ["elsewhere"]


async def _are(stack: Stack, states: set[ProcessState]) -> bool:
    found = await entries(stack)
    return len(found) == len(states) and {one.state for one in found} == states


async def test_a_process_that_was_killed_is_silent_and_its_entry_ends_by_itself(stack: Stack) -> None:
    register = ProcessRegister(stack.store)
    async with noted_process(stack.store, "jobs") as process:
        process.runs()
        (entry,) = await until(lambda: entries(stack))
    await register.write(replace(entry, tubes=("jobs.hunt",), state=ProcessState.RUNNING))
    task = await stack.queue.put("jobs.hunt", NewTask("x"))
    await stack.queue.put("somebody's own", NewTask("x"))
    assert await unserved(stack) == []
    stack.advance_clock(FIVE_MINUTES)
    assert [one.state for one in await entries(stack)] == [ProcessState.SILENT]
    assert await unserved(stack) == [UnservedTube("jobs.hunt", 1, "./ada jobs")]
    stack.advance_clock(2 * FIVE_MINUTES)
    assert await entries(stack) == []
    assert await stack.redis.hlen("processes:{0}:entries") == 0
    await stack.queue.cancel(task)


def test_an_up_that_was_killed_is_bad(tmp_path: Path) -> None:
    """Nothing ran any more, and doctor ended with 0."""
    (tmp_path / "up.json").write_bytes(encode(UpNote(1000, ())))
    (finding,) = check_parts(tmp_path, UTC)
    assert (finding.is_good, finding.repair) == (False, "./ada up")


async def test_a_second_ada_on_one_server_is_named(stack: Stack) -> None:
    """An `./ada up` without accounts took half of the messages of another one, and its simulators got them."""
    register, now = ProcessRegister(stack.store), stack.store.now_ms()
    facts: dict[str, Any] = {"kind": "courier", "name": "sms", "version": "", "started": now, "beat": now, "since": now}
    for host, pid, account, other in (
        (socket.gethostname(), 2**22 + 1, "ada@dead", ""),
        ("elsewhere", 7, "ada@real", "sms of elsewhere, process 7"),
    ):
        await register.write(ProcessRecord(id=account, account=account, host=host, pid=pid, **facts))
        assert (await names_of_accounts(stack.server.url, 1, Durability.LOCAL))[1] == other
    assert [one async for one in check_accounts(stack.store)] == []
    await register.write(ProcessRecord(id="third", account="ada@sandbox", host="third", pid=8, **facts))
    (finding,) = [one async for one in check_accounts(stack.store)]
    assert (finding.what, finding.is_good) == ("sms", False)
    assert "ada@real (elsewhere, process 7)" in finding.detail


async def test_a_bot_that_receives_while_no_process_answers_is_a_fault_until_one_does(stack: Stack) -> None:
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks)
    async with noted_process(stack.store, "bot", "vk") as bot:
        await until(lambda: _are(stack, {ProcessState.STARTING}))
        assert (await overviews.show()).matters == [], "it receives nothing yet"
        bot.runs()
        await until(lambda: _are(stack, {ProcessState.RUNNING}))
        shown = await overviews.show()
        assert [(one.kind, one.subject, one.command) for one in shown.matters] == [
            (MatterKind.UNANSWERED, "vk", "./ada scenarios")
        ]
        assert shown.health == "bad"
        findings = [one async for one in check_bots(stack.store)]
        assert [(one.what, one.is_good, one.repair) for one in findings] == [
            ("bot vk", False, "./ada scenarios"),
            ("bots", None, ""),
        ]
        async with noted_process(stack.store, "scenarios"):
            await until(lambda: _are(stack, {ProcessState.RUNNING, ProcessState.STARTING}))
            assert (await overviews.show()).matters == []
            assert [one.what async for one in check_bots(stack.store)] == ["bots"]


@pytest.mark.parametrize(
    ("tubes", "command"),
    [
        ((webhook.TUBE, events.ANSWERS_TUBE, events.REPLIES_TUBE, series.TUBE), "./ada serve"),
        ((events.TUBE, following.TUBE, schedules_tube().name, *SLOW), "./ada scenarios"),
        ((ingress.TUBE, calls_tube("telegram-bot")), "./ada bot telegram"),
        ((calls_tube("vk"),), "./ada bot vk"),
        ((tube_of("hunt"), notices.TUBE), "./ada jobs"),
        (("echo",), "./ada courier echo"),
        (("somebody's own",), ""),
    ],
)
def test_each_tube_of_ada_has_the_command_that_works_on_it(tubes: Sequence[str], command: str) -> None:
    assert {command_of(tube, ["echo"]) for tube in tubes} == {command}


def test_the_faulty_parts_of_a_machine_are_those_of_the_latest_beat_of_a_process_that_runs() -> None:
    old, new = (UpPart(name=name, state=PartState.STOPPED, at=1, since=1) for name in ("old", "new"))

    def record(beat: int, part: UpPart, state: ProcessState = ProcessState.RUNNING) -> ProcessRecord:
        made = ProcessRecord(id=f"{beat}", kind="serve", host="here", pid=1, version="1", started=1, beat=beat, since=1)
        return replace(made, state=state, faulty_parts=[part])

    processes = [record(2, new), record(1, old), record(3, old, ProcessState.SILENT)]
    assert [found.part for found in faulty_parts(processes)] == [new]


@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        ("courier bogus", "no process courier bogus"),
        ("courier smss", "did you mean courier sms?"),
        ("courier max", "The channel max has no account: set ADA_MAX_TOKEN"),
        ("bot mastodon", "no process bot mastodon"),
        ("scenarios vk", "no process scenarios vk"),
        ("jobs", "no process jobs"),
        *((verb, "") for verb in ("courier sms", "courier vk", "bot vk", "scenarios")),
    ],
)
async def test_up_is_asked_to_start_only_what_it_has(tmp_path: Path, verb: str, fault: str) -> None:
    names = ("serve", "sms", "bot vk", "scenarios")
    write_note(tmp_path, [UpPart(name=name, state=PartState.STOPPED, at=1, since=1) for name in names])
    if fault:
        with pytest.raises(NotFound, match=re.escape(fault)):
            await start_verb(tmp_path, verb, ["courier vk"])
    else:
        await start_verb(tmp_path, verb, ["courier vk"])
    assert take_requests(tmp_path) == ([] if fault else [verb])


async def test_the_faulty_parts_of_up_are_named_while_it_runs(stack: Stack, tmp_path: Path) -> None:
    now = now_ms()
    stopped = UpPart(name="bot vk", state=PartState.STOPPED, at=now, since=now, ends=1, reason="exit code 2: no token")
    write_note(tmp_path, [UpPart(name="valkey", state=PartState.RUNNING, at=now, since=now), stopped])
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks)
    async with noted_process(stack.store, "serve", data=tmp_path):
        (entry,) = await until(lambda: entries(stack))
        assert entry.faulty_parts == [stopped]
        assert [(one.kind, one.subject, one.reason) for one in (await overviews.show()).matters] == [
            (MatterKind.NOT_RUNNING, "bot vk", "exit code 2: no token")
        ]
    assert (await overviews.show()).matters == []
    (tmp_path / "up.json").write_bytes(encode(UpNote(now - 60_000, [stopped])))
    async with noted_process(stack.store, "serve", data=tmp_path):
        (entry,) = await until(lambda: entries(stack))
        assert entry.faulty_parts == [], "up was killed, and its parts with it"


DAY_MS = 24 * 3600 * 1000
SHARDS = 4


async def empty(store: Store) -> None:
    await store.command("FLUSHALL")


async def empty_a_part(store: Store) -> None:
    await store.command("DEL", "installation:{1}", "installation:{3}")


async def restore_yesterday(store: Store) -> None:
    at = int(await store.command("HGET", "installation:{0}", "at"))
    for shard in range(SHARDS):
        await store.command("HSET", f"installation:{{{shard}}}", "at", at - DAY_MS)


async def replace_the_server(store: Store) -> None:
    await empty(store)
    await InstallationMark(store).begin()


LOSSES = {
    "FLUSHALL": (empty, LossKind.EMPTIED, [0], "gone since"),
    "FLUSHDB of a primary of a cluster": (empty_a_part, LossKind.EMPTIED, [1, 3], "gone in 2 of 4 shards since"),
    "the backup of yesterday": (restore_yesterday, LossKind.OLDER, [0], "are those of"),
    "another server": (replace_the_server, LossKind.REPLACED, [0], "another server"),
}


@pytest.mark.parametrize("case", LOSSES)
async def test_each_process_notices_a_loss_once_whichever_is_the_first(server: Server, case: str) -> None:
    lose, kind, shards, words = LOSSES[case]
    store = await Store.open(server.url, SHARDS)
    if "cluster" in case:
        store.shard_map.cluster = ClusterNodes.parse(f"redis+cluster://127.0.0.1:{server.place.port}")
    try:
        marks = [InstallationMark(store) for _ in range(3)]
        for mark in marks:
            await mark.begin()
            assert await mark.find_loss() is None
        await lose(store)
        first, second, third = marks
        found = [loss for mark in (first, second) if (loss := await mark.find_loss())]
        assert [(one.kind, list(one.shards), words in one.sentence) for one in found] == [(kind, shards, True)] * 2
        for mark, loss in zip((first, second), found, strict=True):
            await third.move()  # a process that has not looked yet hides nothing
            await mark.note(loss)
            await mark.begin()
        late = await third.find_loss()
        assert late == found[1], "it reads what the others have noted"
        await third.note(late)
        await third.begin()
        assert [await mark.find_loss() for mark in marks] == [None] * 3
    finally:
        await store.close()


async def test_a_promoted_replica_that_lacks_the_last_seconds_is_no_loss(stack: Stack) -> None:
    mark = InstallationMark(stack.store)
    await mark.begin()
    at = int(await stack.store.command("HGET", "installation:{0}", "at"))
    await stack.store.command("HSET", "installation:{0}", "at", at - 30_000)
    assert await mark.find_loss() is None


async def test_a_loss_is_shown_until_an_operator_accepts_it(stack: Stack) -> None:
    mark, channels = InstallationMark(stack.store), Channels(stack.store)
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    overviews = Overviews(stack.store, stack.queue, channels, webhooks)
    await mark.note(DataLoss(LossKind.OLDER, [0], 1, DAY_MS, DAY_MS // 2))
    shown = await overviews.show()
    assert (shown.health, [(one.kind, one.subject) for one in shown.matters]) == (
        "bad",
        [(MatterKind.DATA_LOST, "older")],
    )
    assert shown.matters[0].reason.startswith(
        "the data of the store are those of 1970-01-01 12:00:00 UTC since 1970-01-02"
    )
    await accept_loss(stack.store)
    assert (await overviews.show()).matters == []


def test_a_process_begins_anew_after_a_loss_and_what_its_start_writes_is_there_again(server: Server) -> None:
    starts = []

    async def serve() -> int:
        starts.append("start")
        store = await Store.open(server.url)
        try:
            async with noted_process(store, "serve"):
                stop = stop_requested()
                await store.command("SET", "registered", "1")
                if len(starts) == 2:
                    return 0
                await store.command("FLUSHALL")
                await stop.wait()
                return 7
        finally:
            await store.close()

    assert run_with_restarts(serve) == 0
    assert starts == ["start", "start"]


async def test_a_fault_that_follows_from_a_loss_begins_the_process_anew_too(stack: Stack) -> None:
    with pytest.raises(StartAgain, match="the data of the store are gone"):  # noqa: PT012 - the end is what raises
        async with noted_process(stack.store, "serve") as process:
            await stack.store.command("FLUSHALL")
            await until(lambda: _noticed(process))
            raise RuntimeError("no such tube")
    assert await entries(stack) == []


async def _noticed(process: NotedProcess) -> bool:
    return process.loss is not None
