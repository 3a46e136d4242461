"""The lines of `./ada actions`."""

import os
from datetime import timedelta

from cli.commands.installation.reports import describe_action
from core.admission.actions import ActionFilter, ActionLog
from core.jobs import JobId, Jobs, Schedule
from core.queue import NewTask, Queue
from core.redis.store import Store
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.servers import Server

ACTION = {
    "at": "2026-11-23T12:00:00+00:00",
    "name": "office",
    "via": "console",
    "what": "POST /v1/cancellations",
    "target": "/v1/cancellations",
    "count": 2,
    "why": "wrong date",
}


def test_a_line_says_who_changed_what_by_which_way_how_many_and_why() -> None:
    assert describe_action(ACTION).endswith("office (console)  POST /v1/cancellations (2): wrong date")
    assert describe_action({**ACTION, "count": 1, "why": ""}).endswith("office (console)  POST /v1/cancellations")


async def test_what_the_queue_and_jobs_verbs_change_is_in_the_log_with_count_filter_and_reason(server: Server) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}

    def ada(*words: str) -> int:
        return run_ada(words, own | {"ADA_REDIS_URL": server.url, "USER": "vera"}, ROOT).returncode

    store = await Store.open(server.url)
    try:
        await Queue(store).put_many("sms", [NewTask("", kind="lost", tenant="school")] * 3)
        jobs = Jobs(store)
        await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
        await jobs.start(JobId("school", "hunt", "7"))
        assert ada("queue", "cancel", "--tenant", "school", "--kind", "lost", "--reason", "spam") == 0
        assert ada("jobs", "pause", "hunt.7", "--tenant", "school", "--reason", "repairs") == 0
        assert ada("jobs", "many", "stop", "--tenant", "school", "--kind", "hunt", "--expected", "1") == 0
        assert ada("queue", "list", "--tenant", "school") == 0, "reading leaves no entry"
        found, _ = await ActionLog(store).page("school", ActionFilter(), None, 10)
    finally:
        await store.close()
    said = [(one.action.what, one.action.count, one.action.filter, one.action.why) for one in found]
    assert said == [
        ("POST /v1/jobs:stop", 1, "kind=hunt", ""),
        ("POST /v1/jobs/{job_id}:pause", 1, "", "repairs"),
        ("POST /v1/queue/tasks:cancel", 3, "tenant=school kind=lost", "spam"),
    ]
    assert {(one.action.who, one.action.via) for one in found} == {("user:vera", "cli")}
