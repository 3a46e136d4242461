"""The examples of docs/coming-from.md do what the page says, block by block."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jobs
from core.queue import Attempt, Backoff, Tube, connect
from jobs.testing import JobTest, run_story
from scenarios.check import check
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder
from tests.support.paths import ROOT
from tests.support.servers import Server

PAGE = (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    return PAGE.split(f"## From {name}\n")[1].split("\n## ")[0]


def block(name: str, language: str) -> str:
    """The last block of a section in this language: that of Ada."""
    return str(re.findall(rf"```{language}\n(.*?)```", section(name), re.DOTALL)[-1])


async def played(folder: BotFolder, scenarios: str, triggers: str, tests: str) -> list[str]:
    folder.write("scenarios/bot.yaml", scenarios).write("triggers.yaml", triggers).write("tests/t.yaml", tests)
    assert [one.message for one in check(folder.folder).problems] == []
    verdicts, problems = await run_tests(folder.folder, load(folder.folder).bot)
    assert problems == []
    return [one.problem for one in verdicts]


async def test_the_bot_of_aiogram_asks_and_greets(tmp_path: Path) -> None:
    folder = BotFolder(tmp_path).write("variables.yaml", "person: {name: text}")
    tests = "t: {steps: [{user: /start, bot: What is your name?}, {user: Anna, bot: 'Hello, Anna!'}]}"
    assert await played(folder, block("aiogram", "yaml"), "text: {exact: {/start: bot.start}}", tests) == [""]


async def test_the_flow_of_n8n_shows_the_rate_or_the_error(tmp_path: Path) -> None:
    returned = "{http_request: {response: {status: 200, body: {rate: 90}}}}"
    tests = f"""
good: {{returns: {returned}, steps: [{{user: USD, bot: "90"}}]}}
bad: {{fail: [http_request], steps: [{{user: USD, bot: {{starts_with: The rates cannot be read}}}}]}}
"""
    folder = BotFolder(tmp_path)
    assert await played(folder, block("n8n", "yaml"), 'text: {"*": bot.rate}', tests) == ["", ""]


async def test_the_calls_beside_celery_and_bullmq_work(server: Server) -> None:
    table = section("Celery and BullMQ")
    for written in (
        'client.put("sums", "[1, 2]")',
        'client.call("sums", "[1, 2]")',
        'Tube("sums", attempts=5, backoff=',
    ):
        assert written in table
    seen: list[str] = []

    async def handler(attempt: Attempt) -> str:
        seen.append(attempt.body)
        return "3"

    async with connect(server.url) as client:
        await client.tubes.create(Tube("sums", attempts=5, backoff=Backoff(timedelta(seconds=1))))
        worker = client.worker("sums", handler)
        running = asyncio.create_task(worker.run())
        await client.put("sums", "[1, 2]", lane="customer 7")
        assert await client.call("sums", "[1, 2]") == "3"
        worker.stop()
        await running
    assert seen == ["[1, 2]"] * 2


async def test_the_job_beside_temporal_applies_once(tmp_path: Path) -> None:
    applied: list[str] = []
    names: dict[str, Any] = {"Job": jobs.Job, "Schedule": jobs.Schedule, "Iteration": jobs.Iteration}

    async def search(query: str) -> list[dict[str, str]]:
        return [{"id": f"{query} {n}"} for n in (1, 2)]

    async def apply(one: dict[str, str]) -> None:
        applied.append(one["id"])

    async def was_sent(one: dict[str, str]) -> bool:
        return one["id"] in applied

    names |= {"timedelta": timedelta, "search": search, "apply": apply, "was_sent": was_sent, "__name__": __name__}
    exec(block("Temporal", "python"), names)

    async def story(test: JobTest) -> None:
        await test.start("hunt.1", {"query": "cook"})
        await test.advance(timedelta(minutes=3))

    await run_story(story, names["Hunt"])
    assert applied == ["cook 1", "cook 2"]


@pytest.mark.parametrize("word", re.findall(r"\]\(([^)#]+\.(?:md|yaml))", PAGE))
def test_the_page_names_files_that_are_there(word: str) -> None:
    assert (ROOT / "docs" / word).is_file()
