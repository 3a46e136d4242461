"""An operator looks at what people's jobs and scenarios do: jobs with their live log, runs step by step."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cli.processes.embedded_valkey import running_url
from core.jobs import Schedule
from core.jobs.kinds import JobKinds
from core.redis.store import Store
from scenarios.engine.results import completed, failed
from scenarios.execution.runs import Runs, run_id
from scenarios.execution.versions import Versions
from scenarios.loader import load
from tests.delivery.console.conftest import Person

CONFIRMS = "document.querySelector('dialog[open] form').requestSubmit()"
TENANT = "default"
CLUB = """
main:
  actions:
    - {type: send, text: Welcome to the club}
    - {type: user, user_state: member, chain: completed}
    - {type: send, text: You are a member, chain: completed}
"""


@pytest.fixture
async def store(person: Person) -> AsyncIterator[Store]:
    """The store of the installation that the person sees."""
    url = running_url(person.running.installation.directory / "data" / "valkey")
    assert url
    opened = await Store.open(url)
    yield opened
    await opened.close()


async def confirm(person: Person, verb: str, reason: str) -> None:
    """Press a button, write the reason into its dialog, and confirm."""
    await person.presses(verb)
    await person.writes("Reason", reason)
    await person.browser.run(CONFIRMS)
    await person.browser.wait_for("!document.querySelector('dialog[open]')")


async def has_no_barrier_on_a_phone(person: Person, axe_source: str, page: str) -> None:
    """Shows the page as a phone with Russian does, and leaves a picture of it."""
    where = await person.browser.run("location.hash.slice(2)")
    await person.visit(where, language="ru", width=390)
    assert await person.barriers(axe_source) == []
    assert await person.sideways() <= 0
    await person.keeps_picture(f"{page}-filled-ru-390")


@pytest.mark.row("W-15")
async def test_an_operator_follows_the_log_of_a_job_and_pauses_resumes_and_stops_it(
    person: Person, store: Store, axe_source: str
) -> None:
    await JobKinds(store).publish({"hunt": Schedule(timedelta(hours=1))})
    await person.running.call("POST", "/v1/jobs", {"kind": "hunt", "user": 42, "parameters": {"query": "teacher"}})
    await person.visit("jobs?state=running&kind=hunt")
    await person.presses("hunt.42")
    await person.sees("started by user")
    await person.sees('"query": "teacher"')
    await confirm(person, "Pause", "too many complaints")
    await person.sees("Paused by an administrator: too many complaints")
    await person.sees("paused by admin: too many complaints")
    await person.keeps_picture("job-paused")
    await confirm(person, "Resume", "they were wrong")
    await person.sees("resumed by admin")
    await person.sees("hunt.42 running")
    await confirm(person, "Stop", "the season is over")
    await person.sees("stopped by admin")
    await person.sees("hunt.42 stopped")
    await confirm(person, "Start", "the next season")
    await person.sees("started by admin")
    await person.sees("hunt.42 running")
    await person.running.call("POST", "/v1/jobs/hunt.42:pause", {"reason": "a holiday"})
    await person.sees("paused by user: a holiday")
    await has_no_barrier_on_a_phone(person, axe_source, "job")
    log = await person.running.call("GET", "/v1/actions")
    assert {"the season is over", "they were wrong"} <= {one.get("why") for one in log["actions"]}


@pytest.mark.row("W-15")
async def test_an_operator_stops_several_jobs_at_once(person: Person, store: Store, axe_source: str) -> None:
    await JobKinds(store).publish({"walk": Schedule(timedelta(hours=1))})
    for user in range(3):
        await person.running.call("POST", "/v1/jobs", {"kind": "walk", "user": user})
    await person.visit("jobs?kind=walk")
    await person.sees("walk.2")
    await person.browser.run("document.querySelector('.head input[type=checkbox]').click()")
    await confirm(person, "Stop", "the dog is ill")
    await person.sees("3 jobs changed")
    await person.keeps_picture("jobs-stopped")
    page = await person.running.call("GET", "/v1/jobs?kind=walk")
    assert {job["state"] for job in page["jobs"]} == {"stopped"}
    await has_no_barrier_on_a_phone(person, axe_source, "jobs")


async def test_an_operator_finds_the_run_of_a_person_and_why_a_step_did_not_run(
    person: Person, store: Store, tmp_path: Path, axe_source: str
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "club.yaml").write_text(CLUB)
    (tmp_path / "triggers.yaml").write_text('text: {"*": club.main}')
    versions = Versions(store)
    version = await versions.publish("v1", load(tmp_path).bot)
    runs = Runs(store, versions, TENANT)
    event = {"id": "e1", "source": "test", "channel": "vk", "user_id": 7, "event_text": "Let me in"}
    run = await runs.begin(run_id("vk.test.e1", "vk:7", 1), "1", "vk:7", event, version, ["club.main"])
    delivery = "0.bot.1763712000000000000"
    run = await runs.record(run, run.run.in_order[0].path, completed({"delivery_id": delivery, "reached": 1}))
    await person.visit("runs")
    await person.chooses("Channel", "vk")
    await person.writes("Person’s id", "7")
    await person.sees("Let me in")
    await person.keeps_picture("runs-of-a-person")
    await person.presses("club.main")
    await person.sees("Welcome to the club")
    await person.sees("under way")
    assert await person.browser.run(f"Boolean(document.querySelector('a[href=\"#/message/{delivery}\"]'))")
    await runs.record(run, run.run.in_order[1].path, failed("the store is closed"))
    await person.sees("the store is closed")
    await person.sees("action 2 ended as failed; the chain is completed")
    await person.keeps_picture("run-over")
    await has_no_barrier_on_a_phone(person, axe_source, "run")
