"""The endpoints /v1/jobs."""

import asyncio
from datetime import UTC, datetime, time, timedelta

import pytest
from msgspec.structs import replace

from core.jobs import DailyWindow, JobId, JobState, Schedule, StoredJob
from core.model.clock import to_ms
from core.redis.keys import KEYS
from jobs import Iteration, Job, JobWorker, Registry, Snapshot, query
from tests.delivery.conftest import Api
from tests.support.waiting import until

HOURLY = Schedule(timedelta(hours=1))
ANNA = {"kind": "hunt", "user": 42, "parameters": {"query": "teacher"}, "timezone": "Europe/Moscow"}


@pytest.fixture
async def hunting(api: Api) -> Api:
    """An installation in which a process runs jobs of the kind `hunt`."""
    await api.services.core.jobs.kinds.publish({"hunt": HOURLY})
    return api


async def test_a_job_is_started_shown_paused_resumed_and_stopped(hunting: Api) -> None:
    started = await hunting.call("POST", "/v1/jobs", ANNA)
    assert (started.status, started.json["id"], started.json["state"]) == (201, "hunt.42", "running")
    where = started.headers["Location"]
    assert (await hunting.call("GET", where)).json == started.json
    paused = await hunting.call("POST", f"{where}:pause", {"reason": "holiday"})
    assert (paused.json["state"], paused.json["paused_by"], paused.json["reason"]) == ("paused", "user", "holiday")
    again = await hunting.call("POST", "/v1/jobs", ANNA)
    assert (again.status, again.code) == (409, "JOB_ALREADY_RUNNING")
    assert (await hunting.call("POST", f"{where}:resume")).json["state"] == "running"
    assert (await hunting.call("POST", f"{where}:stop")).json["state"] == "stopped"
    assert (await hunting.call("POST", f"{where}:resume")).code == "JOB_IN_OTHER_STATE"


async def test_a_job_that_is_stopping_is_shown_and_is_abandoned(hunting: Api) -> None:
    jobs, job_id = hunting.services.core.jobs, JobId("default", "hunt", "42")
    await hunting.call("POST", "/v1/jobs", ANNA)
    job = await jobs.find(job_id)
    begun = StoredJob(job_id, replace(job.record, begun=True, compensates=True), job.version)
    assert await jobs.storage.save(begun)
    stopping = await hunting.call("POST", "/v1/jobs/hunt.42:stop", {"reason": "no time"})
    assert (stopping.json["state"], stopping.json["reason"]) == ("stopping", "no time")
    assert (await hunting.call("POST", "/v1/jobs/hunt.42:stop")).code == "JOB_IN_OTHER_STATE"
    assert (await hunting.call("GET", "/v1/jobs?state=stopping")).json["counts"]["stopping"] == 1
    abandoned = await hunting.call("POST", "/v1/jobs/hunt.42:stop", {"abandon": True})
    assert abandoned.json["state"] == "stopped"


async def test_parameters_of_a_job_are_changed(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    changed = await hunting.call("PATCH", where, {"parameters": {"profile": "main", "query": None}})
    assert (changed.status, changed.json["parameters"]) == (200, {"profile": "main"})
    assert (await hunting.call("GET", where)).json["state"] == "running"
    too_large = await hunting.call("PATCH", where, {"parameters": {"query": "x" * 70_000}})
    assert too_large.code == "PARAMETERS_TOO_LARGE"
    assert (await hunting.call("PATCH", "/v1/jobs/hunt.7", {"parameters": {}})).code == "JOB_NOT_FOUND"


async def test_a_user_cannot_end_the_pause_of_an_administrator(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    assert (await hunting.call("POST", f"{where}:pause", {"by": "admin"})).status == 200
    refused = await hunting.call("POST", f"{where}:resume", {"by": "user"})
    assert (refused.status, refused.code) == (403, "JOB_PAUSED_BY_OTHER")
    _, secret = await hunting.services.api_keys.create("a manager", {"manage"})
    manager = hunting.as_key(secret)
    assert (await manager.call("POST", f"{where}:resume", {"by": "admin"})).code == "ADMIN_NEEDED"
    assert (await hunting.call("POST", f"{where}:resume", {"by": "admin"})).json["state"] == "running"


async def test_a_job_that_was_stopped_while_an_administrator_had_paused_it_is_started_by_one(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    await hunting.call("POST", f"{where}:pause", {"by": "admin", "reason": "complaints"})
    stopped = (await hunting.call("POST", f"{where}:stop")).json
    assert (stopped["state"], stopped["paused_by"]) == ("stopped", "admin")
    assert (await hunting.call("POST", "/v1/jobs", ANNA)).code == "JOB_PAUSED_BY_OTHER"
    _, secret = await hunting.services.api_keys.create("a manager", {"manage"})
    assert (await hunting.as_key(secret).call("POST", "/v1/jobs", {**ANNA, "by": "admin"})).code == "ADMIN_NEEDED"
    assert (await hunting.call("POST", "/v1/jobs", {**ANNA, "by": "limit"})).status == 400
    assert (await hunting.call("POST", "/v1/jobs", {**ANNA, "by": "admin"})).json["state"] == "running"


async def test_jobs_are_listed_with_their_numbers_by_state(hunting: Api) -> None:
    for user in range(3):
        await hunting.call("POST", "/v1/jobs", {"kind": "hunt", "user": user})
    await hunting.call("POST", "/v1/jobs/hunt.1:stop")
    everything = (await hunting.call("GET", "/v1/jobs")).json
    assert everything["counts"] == {"running": 2, "paused": 0, "stopping": 0, "stopped": 1, "finished": 0, "failed": 0}
    stopped = (await hunting.call("GET", "/v1/jobs?state=stopped")).json
    assert [job["id"] for job in stopped["jobs"]] == ["hunt.1"]
    first = (await hunting.call("GET", "/v1/jobs?limit=2")).json
    rest = (await hunting.call("GET", f"/v1/jobs?limit=2&cursor={first['next']}")).json
    assert {job["id"] for job in first["jobs"] + rest["jobs"]} == {"hunt.0", "hunt.1", "hunt.2"}
    assert rest["next"] is None


async def test_no_job_is_passed_over_when_earlier_ones_are_deleted_while_the_list_is_read(hunting: Api) -> None:
    for user in range(5):
        await hunting.call("POST", "/v1/jobs", {"kind": "hunt", "user": user})
    store, listed = hunting.services.core.store, KEYS["jobs"].at(0, "default")
    everything = await store.command("ZRANGE", listed, 0, -1, "WITHSCORES")
    first = (await hunting.call("GET", "/v1/jobs?limit=2")).json
    for name, _ in everything[:2]:
        await store.command("ZREM", listed, name)
    rest = (await hunting.call("GET", f"/v1/jobs?limit=9&cursor={first['next']}")).json
    assert [job["id"] for job in rest["jobs"]] == ["hunt.2", "hunt.3", "hunt.4"]
    for name, at in everything[:2]:
        await store.command("ZADD", listed, at, name)


async def test_a_job_of_another_tenant_does_not_exist(hunting: Api) -> None:
    await hunting.services.core.jobs.start(JobId("another", "hunt", "42"))
    for call in (("GET", "/v1/jobs/hunt.42"), ("POST", "/v1/jobs/hunt.42:stop"), ("GET", "/v1/jobs/hunt.42/log")):
        assert (await hunting.call(*call)).code == "JOB_NOT_FOUND"
    assert (await hunting.call("GET", "/v1/jobs")).json["jobs"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "nothing", "user": 1}, "JOB_KIND_UNKNOWN"),
        ({"kind": "hunt", "user": 1, "timezone": "Atlantis"}, "TIMEZONE_UNKNOWN"),
        ({"kind": "hunt", "user": 1, "parameters": {"profile": "x" * 70_000}}, "PARAMETERS_TOO_LARGE"),
    ],
)
async def test_a_job_that_cannot_be_started_is_refused(hunting: Api, body: dict[str, object], code: str) -> None:
    refused = await hunting.call("POST", "/v1/jobs", body)
    assert refused.status in (400, 422)
    assert code in refused.body.decode()
    assert (await hunting.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_a_signal_a_time_and_a_schedule_over_http(hunting: Api) -> None:
    schedule = {"cron": "0 9 * * mon-fri", "begin": "08:00", "end": "20:00"}
    body = {"kind": "hunt", "user": 1, "at": "2026-12-01T12:00:00Z", "schedule": schedule}
    started = await hunting.call("POST", "/v1/jobs", body)
    assert (started.status, started.json["next_run"]) == (201, "2026-12-01T12:00:00Z")
    assert started.json["schedule"] == {"cron": "0 9 * * mon-fri", "begin": "08:00:00", "end": "20:00:00"}
    for _ in range(2):
        sent = await hunting.call("POST", "/v1/jobs/hunt.1:signal", {"name": "approved", "data": [1], "id": "7"})
        assert sent.status == 204
    jobs = hunting.services.core.jobs
    (signal,) = await jobs.storage.signals(JobId("default", "hunt", "1"))
    assert '"data":[1]' in signal
    changed = await hunting.call("PATCH", "/v1/jobs/hunt.1", {"schedule": {"seconds": 60}, "timezone": "Asia/Tokyo"})
    assert (changed.json["schedule"], changed.json["timezone"]) == ({"seconds": 60.0}, "Asia/Tokyo")


@pytest.mark.parametrize(
    ("schedule", "code"),
    [
        ({"cron": "at nine o'clock"}, "CRON_MALFORMED"),
        ({"cron": "0 9 * * *", "seconds": 60}, "SCHEDULE_AMBIGUOUS"),
        ({"begin": "09:00"}, "SCHEDULE_AMBIGUOUS"),
        ({"begin": "09:00", "end": "09:00"}, "WINDOW_EMPTY"),
    ],
)
async def test_a_schedule_that_cannot_be_is_refused(hunting: Api, schedule: dict[str, object], code: str) -> None:
    refused = await hunting.call("POST", "/v1/jobs", {"kind": "hunt", "user": 1, "schedule": schedule})
    assert (refused.status, refused.code) == (422, code)


async def test_what_is_not_known_is_listed_resolved_and_reset(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    storage, job_id = hunting.services.core.jobs.storage, JobId("default", "hunt", "42")
    job = await hunting.services.core.jobs.find(job_id)
    assert await storage.save(job, holder="1 attempt")
    for name in ("effect:apply 7", "effect:apply 8"):
        await storage.write_unit(job_id, "1 attempt", name, '{"status":"unknown","iteration":3}')
    page = (await hunting.call("GET", f"{where}/units?status=unknown&limit=10")).json
    assert sorted(page["units"], key=lambda unit: unit["id"]) == [
        {"id": f"effect:apply {number}", "status": "unknown", "iteration": 3} for number in (7, 8)
    ]
    assert page["next"] is None
    seven, eight = ({"unit": f"effect:apply {number}"} for number in (7, 8))
    resolved = await hunting.call("POST", f"{where}/units:resolve", {**seven, "outcome": "done", "result": 5})
    assert resolved.status == 204
    assert (await hunting.call("POST", f"{where}/units:reset", eight)).status == 204
    (unit,) = (await hunting.call("GET", f"{where}/units")).json["units"]
    assert (unit["id"], unit["status"], unit["result"]) == ("effect:apply 7", "done", 5)
    known = await hunting.call("POST", f"{where}/units:resolve", {**seven, "outcome": "not_done"})
    assert (known.status, known.code) == (409, "UNIT_NOT_UNCLEAR")
    gone = await hunting.call("POST", f"{where}/units:reset", eight)
    assert (gone.status, gone.code) == (404, "UNIT_NOT_FOUND")
    assert (await hunting.call("POST", f"{where}/units:reset", {**seven, "by": "limit"})).code == "WRONG_VALUE"
    _, secret = await hunting.services.api_keys.create("a reader", {"read"})
    assert (await hunting.as_key(secret).call("POST", f"{where}/units:reset", seven)).status == 403


async def test_the_steps_of_a_job_are_listed_and_it_is_reset_to_one_of_them(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    storage, job_id = hunting.services.core.jobs.storage, JobId("default", "hunt", "42")
    begun = await hunting.services.core.jobs.find(job_id)
    assert await storage.save(StoredJob(job_id, replace(begun.record, begun=True), begun.version), holder="1 attempt")
    await storage.write_step(job_id, "1 attempt", "step:search", "[7]")
    await storage.write_intent(job_id, "1 attempt", JobState.RUNNING, "effect:apply 7", '{"status":"done","result":5}')
    await hunting.services.core.jobs.fail(job_id, "no letter")
    page = (await hunting.call("GET", f"{where}/steps?limit=10")).json
    assert [(step["id"], step["status"], step["result"]) for step in page["steps"]] == [
        ("step:search", "done", [7]),
        ("effect:apply 7", "done", 5),
    ]
    assert page["next"] is None
    reset = {"from": "search"}
    for dry_run, state in ((True, "failed"), (False, "running")):
        answer = (await hunting.call("POST", f"{where}:reset", {**reset, "dry_run": dry_run})).json
        assert [step["id"] for step in answer["dropped"]] == ["step:search"]
        assert [step["id"] for step in answer["kept"]] == ["effect:apply 7"]
        assert answer["job"]["state"] == state
    gone = await hunting.call("POST", f"{where}:reset", reset)
    assert (gone.status, gone.code) == (404, "STEP_NOT_FOUND")
    _, secret = await hunting.services.api_keys.create("a manager", {"manage"})
    for body, status in (({**reset, "by": "admin"}, 404), ({"from": "effect:apply 7", "by": "admin"}, 403)):
        assert (await hunting.as_key(secret).call("POST", f"{where}:reset", body)).status == status


async def test_a_job_that_is_started_again_keeps_what_is_not_given(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    for given, kept in (({}, ANNA), ({"parameters": {}, "timezone": "UTC"}, {"parameters": {}, "timezone": "UTC"})):
        await hunting.call("POST", f"{where}:stop")
        again = (await hunting.call("POST", "/v1/jobs", {"kind": "hunt", "user": 42, **given})).json
        assert (again["parameters"], again["timezone"]) == (kept["parameters"], kept["timezone"])


async def test_an_iteration_waits_for_the_window_of_the_user(hunting: Api) -> None:
    hour = datetime.now(UTC).hour
    window = DailyWindow(time((hour + 2) % 24), time((hour + 3) % 24))
    await hunting.services.core.jobs.kinds.publish({"night": Schedule(timedelta(hours=1), window)})
    job = (await hunting.call("POST", "/v1/jobs", {"kind": "night", "user": 1})).json
    due = datetime.fromisoformat(job["next_run"])
    assert due.time() == window.begin
    assert to_ms(due) > to_ms(datetime.now(UTC))


async def test_the_live_log_is_streamed_and_resumes_after_the_last_line_seen(hunting: Api) -> None:
    where = (await hunting.call("POST", "/v1/jobs", ANNA)).headers["Location"]
    headers = {"Authorization": f"Bearer {hunting.secret}"}

    async def next_event(after: str) -> tuple[str, str]:
        """(id, data) of the first event after this line."""
        more = {"Last-Event-ID": after} if after else {}
        async with (
            asyncio.timeout(20),
            hunting.session.get(f"{hunting.url}{where}/log", headers={**headers, **more}) as response,
        ):
            event = {}
            async for line in response.content:
                name, _, value = line.decode().strip().partition(": ")
                event[name] = value
                if not name and "id" in event:
                    break
        return event["id"], event["data"]

    first, text = await next_event("")
    assert '"text":"started by user"' in text
    waiting = asyncio.create_task(next_event(first))
    await hunting.call("POST", f"{where}:pause")
    second, text = await waiting
    assert '"text":"paused by user"' in text
    assert second != first
    refused = await hunting.call("GET", f"{where}/log", headers={"Last-Event-ID": "nonsense"})
    assert refused.status in (400, 422)


async def test_the_jobs_of_a_filter_are_counted_and_changed(hunting: Api) -> None:
    for user in range(3):
        await hunting.call("POST", "/v1/jobs", {**ANNA, "user": user})
    found = (await hunting.call("GET", "/v1/jobs:count?kind=hunt&q=teacher")).json
    assert (found["count"], found["has_more"]) == (3, False)
    body = {"filter": {"kind": "hunt", "q": "teacher"}, "before": found["now"], "expected": 2, "reason": "enough"}
    paused = await hunting.call("POST", "/v1/jobs:pause", body)
    assert paused.json == {"changed": 2, "unchanged": 0, "refused": {}, "next": None}
    chosen = {"filter": {"reason": "ENOUGH"}, "before": found["now"] + 60_000, "expected": 3}
    assert (await hunting.call("GET", "/v1/jobs?reason=enough")).json["jobs"][0]["reason"] == "enough"
    assert (await hunting.call("POST", "/v1/jobs:reset", {**chosen, "from": "search"})).json["refused"] == {
        "STEP_NOT_FOUND": 2
    }
    resolution = {**chosen, "unit": "effect:", "outcome": "done"}
    assert (await hunting.call("POST", "/v1/jobs:resolve", resolution)).json["unchanged"] == 2
    assert (await hunting.call("POST", "/v1/jobs:resume", chosen)).json["changed"] == 2
    signal = {**chosen, "filter": {"kind": "hunt", "q": "teacher"}, "name": "answer", "data": "yes", "id": "once"}
    for _ in range(2):
        assert (await hunting.call("POST", "/v1/jobs:signal", signal)).json["changed"] == 3
    log = [one.text for one in await hunting.services.core.jobs.log.last(JobId("default", "hunt", "0"))]
    assert log.count("signal answer by user") == 1
    everything = {"filter": {"kind": "hunt"}, "before": found["now"] + 60_000, "expected": 3}
    assert (await hunting.call("POST", "/v1/jobs:stop", {**everything, "abandon": True})).json["changed"] == 3
    last = (await hunting.services.core.jobs.log.last(JobId("default", "hunt", "0")))[-1]
    assert last.text == "abandoned by user"
    assert (await hunting.call("POST", "/v1/jobs:stop", {**everything, "filter": {}})).code == "SELECTION_EMPTY"
    _, secret = await hunting.services.api_keys.create("a manager", {"manage"})
    refused = await hunting.as_key(secret).call("POST", "/v1/jobs:stop", {**everything, "by": "admin"})
    assert refused.code == "ADMIN_NEEDED"


class Counts(Job):
    name = "counts"
    schedule = Schedule(timedelta(hours=1))

    async def run(self, iteration: Iteration) -> None: ...

    @query
    def double(self, job: Snapshot, of: int) -> int:
        """Return twice the number."""
        return 2 * of


async def test_a_job_is_asked(hunting: Api) -> None:
    core = hunting.services.core
    worker = JobWorker(core.store, core.client, Registry([Counts]))
    running = asyncio.create_task(worker.run())
    await until(lambda: core.jobs.kinds.queries("counts"))
    await hunting.call("POST", "/v1/jobs", {"kind": "counts", "user": 1})
    _, secret = await hunting.services.api_keys.create("a reader", {"read"})
    reader = hunting.as_key(secret)
    answer = await reader.call("POST", "/v1/jobs/counts.1/queries/double", {"parameters": {"of": 21}})
    assert (answer.status, answer.json) == (200, {"answer": 42})
    malformed = await reader.call("POST", "/v1/jobs/counts.1/queries/double")
    assert (malformed.status, malformed.code) == (422, "QUERY_MALFORMED")
    unknown = await reader.call("POST", "/v1/jobs/counts.1/queries/triple", {})
    assert (unknown.status, unknown.code) == (404, "QUERY_UNKNOWN")
    missing = await reader.call("POST", "/v1/jobs/counts.2/queries/double", {})
    assert (missing.status, missing.code) == (404, "JOB_NOT_FOUND")
    worker.stop(timedelta(seconds=5))
    await running
    core.store.clock_offset_ms += 120_000
    unanswered = await reader.call("POST", "/v1/jobs/counts.1/queries/double", {"parameters": {"of": 21}})
    assert (unanswered.status, unanswered.code) == (503, "QUERY_UNANSWERED")
