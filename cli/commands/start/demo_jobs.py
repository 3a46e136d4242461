"""The play of `./ada demo jobs`: the job of examples/job-hunter hunts for two users at the sandbox's service.

Both sign in. Their jobs write a query from the profile, and apply to what it finds; in the middle the process is
killed, and one user pauses. At the end each user has applied to every vacancy exactly once.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial

import aiohttp

from cli.client.http_client import JsonObject
from cli.command import CommandFailed
from cli.commands.start.demo_stage import Stage
from examples import JOB_HUNTER

USERS = (1, 2)
PAGES, PER_PAGE = 3, 20
SETTINGS = {"ADA_JOBS": str(JOB_HUNTER), "ADA_LEASE": "2s", "HUNT_PERIOD": "2", "HUNT_PAGES": str(PAGES)}

_TIMEOUT = 60.0
_FIELD = re.compile(r'type="hidden" name="(\w+)" value="(\w+)"')


async def play(stage: Stage) -> JsonObject:
    """Plays everything; returns what a program may check. Raises CommandFailed at the first step that fails."""
    for user in USERS:
        await sign_in(stage, user)
        await stage.api.call("POST", "/v1/jobs", {"kind": "hunt", "user": user, "timezone": "Europe/Moscow"})
    await until(lambda: has_applied(stage, 10), "the first applications")
    stage.show("demo", "the process that runs the jobs is killed in the middle (SIGKILL)")
    stage.kill("jobs")
    await pause_and_resume(stage)
    wanted = len(USERS) * PAGES * PER_PAGE
    await until(lambda: has_applied(stage, wanted), f"{wanted} applications")
    jobs = (await stage.api.call("GET", "/v1/jobs"))["jobs"]
    for job in jobs:
        await until(partial(went_on, stage, job), "a further iteration")
    await show_log(stage, "hunt.1")
    counters = await applications(stage)
    stage.show("demo", f"{counters['stored']} applications of {len(USERS)} users, each vacancy once")
    if counters["stored"] != wanted:
        raise CommandFailed(f"{counters['stored']} applications were stored, not {wanted}")
    return {"jobs": jobs, "applications": counters["stored"]}


async def sign_in(stage: Stage, user: int) -> None:
    """Sign a user in: open the page, confirm it, agree at the service, and be led back to Ada."""
    begun = await stage.api.call("POST", "/v1/sign-in", {"service": "vacancies", "user": user})
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(begun["url"]) as page:
            form = dict(_FIELD.findall(await page.text()))
        async with browser.post(begun["url"], data=form) as page:
            text = await page.text()
    if page.status != 200 or "You are signed in" not in text:
        raise CommandFailed(f"the sign-in ended with status {page.status}: {text[:200]}")
    stage.show(f"user {user}", "signed in to the service of vacancies")


async def pause_and_resume(stage: Stage) -> None:
    """Pause a job and resume it: meanwhile it applies to nothing, whatever restarts."""
    paused = await stage.api.call("POST", "/v1/jobs/hunt.2:pause", {"reason": "holiday"})
    stage.show("user 2", f"paused the job: {paused['reason']}")
    stored = (await applications(stage))["stored"]
    await until(lambda: has_applied(stage, stored + 5), "applications of the other job")
    if (await stage.api.call("GET", "/v1/jobs/hunt.2"))["state"] != "paused":
        raise CommandFailed("the job that a user has paused is not paused any more")
    await stage.api.call("POST", "/v1/jobs/hunt.2:resume")
    stage.show("user 2", "resumed the job, which goes on where it was")


async def applications(stage: Stage) -> JsonObject:
    counters: JsonObject = (await stage.sandbox.call("GET", "/state.json"))["counters"].get("vacancies", {})
    return counters


async def has_applied(stage: Stage, wanted: int) -> bool:
    return bool((await applications(stage)).get("stored", 0) >= wanted)


async def went_on(stage: Stage, before: JsonObject) -> bool:
    return bool((await stage.api.call("GET", f"/v1/jobs/{before['id']}"))["iterations"] > before["iterations"])


async def show_log(stage: Stage, job: str, lines: int = 5) -> None:
    """Show the first lines of a job's live log."""
    async for event in stage.api.events(f"/v1/jobs/{job}/log"):
        stage.show("log", f"{job}: {event.data['text']}")
        lines -= 1
        if not lines:
            return


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition. Raises CommandFailed if it does not come true in time."""
    deadline = time.monotonic() + _TIMEOUT
    while not await condition():
        if time.monotonic() > deadline:
            raise CommandFailed(f"not within {_TIMEOUT:.0f} s: {what}")
        await asyncio.sleep(0.1)
