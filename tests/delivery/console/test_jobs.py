"""An operator reads people's jobs, with their live log."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core.jobs import JobId, Jobs, Schedule, StoredJob
from core.jobs.kinds import JobKinds
from core.queue import QueueClient
from core.redis.store import Store
from jobs import Iteration, Job, JobWorker, Registry, Snapshot, query
from tests.delivery.console.conftest import Person
from tests.support.waiting import until


async def confirm(person: Person, verb: str, reason: str) -> None:
    """Press a button, write the reason into its dialog, and confirm."""
    await person.presses(verb)
    await person.writes("Reason", reason)
    await person.confirms()
    await person.browser.wait_for("!document.querySelector('dialog[open]')")


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
    await person.has_no_barrier_on_a_phone(axe_source, "job")
    await person.sees("пауза, кто: сам человек; причина: a holiday")
    log = await person.running.call("GET", "/v1/actions")
    assert {"the season is over", "they were wrong"} <= {one.get("why") for one in log["actions"]}


async def test_a_page_shows_a_change_of_its_job_that_writes_no_line(person: Person, store: Store) -> None:
    """A job that begins to wait, for example: its page may have read it a moment before."""
    await JobKinds(store).publish({"swim": Schedule(timedelta(hours=1))})
    await person.running.call("POST", "/v1/jobs", {"kind": "swim", "user": 1})
    await person.visit("job/swim.1")
    await person.sees("started by user")
    jobs = Jobs(store)
    for reason in ("the pool has no water", "the pool is closed"):  # the first may be read with the line before
        job = await jobs.find(JobId("default", "swim", "1"))
        waiting = StoredJob(job.id, replace(job.record, reason=reason), job.version)
        assert await jobs.storage.save(waiting, puts_task=False)
        await person.sees(reason)


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
    await person.has_no_barrier_on_a_phone(axe_source, "jobs")


async def test_an_operator_stops_all_jobs_of_a_filter(person: Person, store: Store, axe_source: str) -> None:
    await JobKinds(store).publish({"run": Schedule(timedelta(hours=1))})
    for user in range(4):
        query = "rome" if user else "oslo"
        await person.running.call("POST", "/v1/jobs", {"kind": "run", "user": user, "parameters": {"to": query}})
    await person.visit("jobs?kind=run&state=running&q=rome")
    await person.sees("run.3")
    await person.has_no_barrier_on_a_phone(axe_source, "jobs-filter")
    await person.visit("jobs?kind=run&state=running&q=rome")
    await person.sees("run.3")
    await confirm(person, "Stop all of these", "Rome is closed")
    await person.sees("3 jobs changed")
    await person.keeps_picture("jobs-of-filter-stopped")
    page = await person.running.call("GET", "/v1/jobs?kind=run")
    assert [job["state"] for job in page["jobs"]].count("stopped") == 3
    await person.visit("jobs?kind=run&state=stopped&q=rome")
    await person.presses("Repeat all of these")
    await person.writes("From the step", "search")
    await person.confirms()
    await person.sees("3 jobs were not changed")


class Basket(msgspec.Struct):
    """What an order has looked at."""

    letters: int = 0


class Order(Job):
    """Handles two letters, starts a child and waits for a yes; what it then does outside has an unclear end."""

    name = "order"
    schedule = Schedule()
    state = Basket
    most_failures = 2  # the second finds out that the end of the effect is unclear

    async def run(self, iteration: Iteration) -> dict[str, Any]:
        await iteration.each(["a", "b"], self._handle(iteration), key=str, name="letters")
        prices = await iteration.step("look", self._prices)
        await iteration.start_child("parcel", "first")
        answer = await iteration.wait("answer")
        return {"paid": await iteration.effect("pay 7", self._pay), "answer": answer, "prices": prices}

    def _handle(self, iteration: Iteration) -> Callable[[str], Awaitable[None]]:
        async def handle(_: str) -> None:
            iteration.state.letters += 1

        return handle

    async def _prices(self) -> list[int]:
        return [300, 700]

    async def _pay(self) -> str:
        raise ConnectionError("no answer from the bank")

    @query
    def double(self, job: Snapshot, of: int) -> int:
        """Return twice the number."""
        return 2 * of


class Parcel(Job):
    """Waits for ever."""

    name = "parcel"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> None:
        await iteration.wait("arrived")


@pytest.fixture
async def orders(store: Store) -> AsyncIterator[None]:
    client = QueueClient(store)
    worker = JobWorker(store, client, Registry([Order, Parcel]))
    running = asyncio.create_task(worker.run())
    yield
    worker.stop(timedelta(seconds=20))
    await running
    await client.close()


async def test_an_operator_answers_what_a_job_waits_for_and_says_what_became_of_its_effect(
    person: Person, store: Store, orders: None, axe_source: str
) -> None:
    await until(lambda: JobKinds(store).queries("order"))
    await person.running.call("POST", "/v1/jobs", {"kind": "order", "user": 7})
    await person.visit("job/order.7")
    await person.sees("It waits for the signal: answer")
    await person.sees("step:look")
    await person.sees("[300,700]")
    await person.sees("Has started\nparcel~first.7")
    await person.sees('State of its own\n{\n  "letters": 2\n}')
    await person.presses("Items and effects")
    await person.sees("unit letters:a")
    await person.presses("Ask the job")
    await person.writes("Name of the query", "double")
    await person.writes("Parameters", '{"of": 21}')
    await person.confirms()
    await person.sees("42")
    await person.presses("Back")
    await person.has_no_barrier_on_a_phone(axe_source, "job-waits")
    await person.sees("Ждёт сигнала: answer")
    await person.visit("job/order.7")
    await person.presses("Send the signal answer")
    await person.writes("Data", "yes, please")
    await person.confirms()
    await person.sees("order.7 failed")
    await person.presses("Say what became of it")
    await person.writes("Result", "receipt 12")
    await person.keeps_picture("job-unknown")
    await person.confirms()
    await person.sees("effect:pay 7: resolved as done by admin")
    await person.presses("Repeat")
    await person.sees("Stays: ")
    await person.confirms()
    await person.sees("order.7 finished")
    await person.sees('"paid": "receipt 12"')
    await person.visit("job/order.7", language="ru", width=390)
    await person.sees("сигнал answer, кто: администратор")
    await person.sees("effect:pay 7: указан исход «сделано», кто: администратор")
    assert (await person.running.call("GET", "/v1/jobs/order.7"))["result"]["answer"] == "yes, please"


async def test_an_operator_signals_all_jobs_of_a_filter_and_repeats_one_from_a_step(
    person: Person, store: Store, orders: None
) -> None:
    await until(lambda: JobKinds(store).queries("order"))
    for user in (21, 22):
        await person.running.call("POST", "/v1/jobs", {"kind": "order", "user": user, "parameters": {"to": "riga"}})
    await person.visit("jobs?kind=order&q=riga&state=running")
    await person.sees("order.22")
    await person.presses("Signal all of these")
    await person.writes("Signal", "answer")
    await person.confirms()
    await person.sees("2 jobs changed")
    await person.visit("jobs?kind=order&q=riga&state=failed")
    await person.sees("order.21")
    await person.sees("order.22")
    await person.presses("Resolve in all of these")
    await person.writes("Effect or item", "effect:pay")
    await person.confirms()
    await person.sees("2 jobs changed")
    await person.running.call("POST", "/v1/jobs", {"kind": "order", "user": 23})
    await person.visit("job/order.23")
    await person.sees("step:look")
    await person.presses("Repeat")
    await person.sees("Dropped: step:look")
    await person.confirms()
    await person.sees("reset to step:look by admin")
