"""An operator reads people's jobs, with their live log."""

from datetime import timedelta

from core.jobs import Schedule
from core.jobs.kinds import JobKinds
from core.redis.store import Store
from tests.delivery.console.conftest import Person


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
