"""The live log of a job: its last lines, and every new one (U-22)."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncGenerator
from datetime import UTC

import pytest

from cli.commands.installation.jobs import show_log
from core.jobs import Actor
from core.jobs.views import JobLog, LogLine
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from jobs import Iteration
from tests.jobs.conftest import ANNA, Playground
from tests.support.waiting import until

LOG, BELL = (KEYS[kind].at(0, f"{ANNA.tenant}/{ANNA.name}") for kind in ("job_log", "job_bell"))


async def next_texts(following: AsyncGenerator[LogLine, None], count: int) -> list[str]:
    return [(await asyncio.wait_for(anext(following), 20)).text for _ in range(count)]


async def write_lines(playground: Playground, numbers: range) -> None:
    """As the attempt `me`, which has taken the job."""
    for number in numbers:
        assert await playground.jobs.storage.write_line(ANNA, "me", f"line {number}") == "running"


async def start_and_hold(playground: Playground) -> None:
    """The job has one line."""
    begun = await playground.jobs.storage.save(await playground.jobs.start(ANNA), holder="me")
    assert begun


async def test_the_live_log_goes_on_after_the_last_line_that_was_seen(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        for n in range(3):
            await iteration.log(f"applied to {n}")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    lines = await playground.jobs.log.last(ANNA)
    assert [line.text for line in lines] == ["started by user", "applied to 0", "applied to 1", "applied to 2"]
    assert [line.id for line in lines] == ["1", "2", "3", "4"]
    following = playground.jobs.log.follow(ANNA, after=lines[1].id)
    assert await next_texts(following, 2) == ["applied to 1", "applied to 2"]
    await playground.jobs.pause(ANNA, Actor.USER, "enough")
    assert await next_texts(following, 1) == ["paused by user: enough"]
    await following.aclose()


async def test_each_new_line_wakes_all_followers_which_do_not_poll(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.jobs.views.LONGEST_SLEEP", 3600.0)
    redis = playground.stack.redis
    await start_and_hold(playground)
    followers = [JobLog(playground.stack.store).follow(ANNA) for _ in range(3)]
    for following in followers:
        assert await next_texts(following, 1) == ["started by user"]
    for number in range(3):
        waiting = [asyncio.create_task(next_texts(following, 1)) for following in followers]
        await until(lambda: redis.exists(BELL))
        await write_lines(playground, range(number, number + 1))
        assert await asyncio.gather(*waiting) == [[f"line {number}"]] * 3
    for following in followers:
        await following.aclose()
    assert await redis.pttl(BELL) <= 60_000


async def test_a_log_keeps_its_last_thousand_lines_and_their_numbers(playground: Playground) -> None:
    await start_and_hold(playground)
    await write_lines(playground, range(2, 1206))
    lines = await playground.jobs.log.last(ANNA, 5000)
    assert [(line.id, line.text) for line in (lines[0], lines[-1])] == [("206", "line 206"), ("1205", "line 1205")]
    assert len(lines) == 1000
    for after, first in (("1", "line 206"), ("800", "line 801"), ("1204", "line 1205")):
        following = playground.jobs.log.follow(ANNA, after)
        assert await next_texts(following, 1) == [first]
        await following.aclose()


async def test_a_reader_of_a_log_that_was_lost_gets_the_new_one_from_its_beginning(playground: Playground) -> None:
    await start_and_hold(playground)
    following = playground.jobs.log.follow(ANNA, "700")
    assert await next_texts(following, 1) == ["started by user"]
    await following.aclose()


async def test_a_line_may_have_any_characters(playground: Playground) -> None:
    await start_and_hold(playground)
    text = "100 %d of\0 работа 🐝"
    await playground.jobs.storage.write_line(ANNA, "me", text)
    assert (await playground.jobs.log.last(ANNA))[-1].text == text


async def test_the_command_log_shows_the_last_lines_and_follows(
    playground: Playground, capsys: pytest.CaptureFixture[str]
) -> None:
    await start_and_hold(playground)
    await write_lines(playground, range(3))
    arguments = Namespace(tenant=ANNA.tenant, job=ANNA.name, limit=2, follow=True, json=False, zone=UTC)
    following = asyncio.create_task(show_log(playground.jobs, arguments))
    await until(lambda: playground.stack.redis.exists(BELL))
    await write_lines(playground, range(3, 4))
    shown = ""

    def has_last() -> bool:
        nonlocal shown
        shown += capsys.readouterr().out
        return "line 3" in shown

    await until(has_last)
    await cancel_and_wait(following)
    assert [line.partition("  ")[2] for line in shown.splitlines()] == ["line 1", "line 2", "line 3"]
