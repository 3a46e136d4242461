"""The two systems that are compared: Ada's processes with the bot of `samples`, and a bare aiogram bot."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.harness.child_process import ChildProcess
from bench.harness.environment import START_TIMEOUT, Environment, environment
from bench.scenarios.samples import write_bot

AIOGRAM, ADA = "bare aiogram", "ada"
SYSTEMS = (AIOGRAM, ADA)

_PROCESSES = (("courier", "telegram-bot"), ("scenarios",), ("bot", "telegram"))
"""The last one gets the updates."""


@asynccontextmanager
async def bench_environment() -> AsyncIterator[Environment]:
    """Start a server, with the folder of the bot in the settings of all processes."""
    async with environment() as env:
        env.variables["ADA_SCENARIOS"] = str(write_bot(env.directory / "bot"))
        yield env


async def start_sandbox(env: Environment) -> str:
    """Starts the sandbox; returns the address of its page."""
    _, facts = await env.start_command("sandbox", "--json")
    env.variables |= facts["environment"]
    return str(facts["page"])


@asynccontextmanager
async def running(env: Environment, system: str) -> AsyncIterator[Sequence[ChildProcess]]:
    """Starts a system, yields its processes when they are ready, stops them."""
    children = [await _aiogram(env)] if system == AIOGRAM else [await _ada(env, *args) for args in _PROCESSES]
    try:
        yield children
    finally:
        for child in reversed(children):
            await env.stop_child(child)


async def _ada(env: Environment, *args: str) -> ChildProcess:
    child, _ = await env.start_command(*args)
    return child


async def _aiogram(env: Environment) -> ChildProcess:
    child = await env.start("aiogram", "bench.baselines.aiogram")
    await child.facts(START_TIMEOUT)
    return child
