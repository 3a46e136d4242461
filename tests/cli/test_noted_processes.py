"""The entry of a process in the register, from its start to its end."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.command import OPERATOR_NEEDED, CommandFailed
from cli.commands.installation.processes import describe
from cli.commands.parts.courier import deliver
from cli.processes.noted_process import noted_process
from core.courier.interface import Halted
from core.courier.runtime import Runtime
from core.deliveries.channels import Channels
from core.processes import ProcessRecord, ProcessRegister, ProcessState, UnservedTube, overview
from core.queue import NewTask
from tests.support.stack import HOUR, QUICK, FakeCourier, Stack, people
from tests.support.waiting import until

FIVE_MINUTES = timedelta(minutes=5)


async def entries(stack: Stack) -> list[ProcessRecord]:
    return list(await ProcessRegister(stack.store).list(int(stack.now().timestamp() * 1000)))


async def unserved(stack: Stack) -> list[UnservedTube]:
    return list((await overview(stack.store, stack.queue, Channels(stack.store)))[1])


@pytest.mark.row("W-14")
async def test_a_courier_is_shown_with_its_throttle_and_leaves_the_reason_why_it_was_halted(
    stack: Stack, tmp_path: Path
) -> None:
    refused = asyncio.Event()
    halted = FakeCourier(respond=lambda _: Halted("the token is refused"), account="ada")
    async with noted_process(stack.store, "courier", "echo") as process:
        runtime = Runtime(stack.store, halted, QUICK)
        working = asyncio.create_task(deliver(runtime, process, refused, tmp_path / "pulse"))
        (found,) = await until(lambda: _serving(stack, "echo"))
        assert (found.state, found.account, found.pid) == (ProcessState.RUNNING, "ada", os.getpid())
        await stack.queue.throttle("echo", "account:ada", HOUR)
        (view,) = (await overview(stack.store, stack.queue, Channels(stack.store)))[0]
        assert "throttled by the provider (account) for 3" in describe(view, stack.now())
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


@pytest.mark.row("W-14")
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


@pytest.mark.row("W-14")
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
