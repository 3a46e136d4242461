"""Tests of jobs: a clock that the test moves, doubles of what a job does outside, and a crash at every point.

    async def story(test: JobTest) -> None:
        mail = test.double(shop, "send_mail")
        await test.start("watch.42", {"book": "1984"})
        await test.advance(timedelta(days=1))
        assert mail.calls == [("1984",)]

    async def test_a_watcher_sends_one_mail() -> None:
        await run_story(story, Watch)

    async def test_a_crash_at_any_point_changes_nothing() -> None:
        await try_every_crash(story, Watch)

Guarantee: the jobs run on a real Valkey, with the code that runs them in production; only the clock and the processes
are the test's. One server is started for all tests of a process.
"""

from jobs.testing.crashes import Double, Killed
from jobs.testing.job_test import JobTest, run_story, try_every_crash

__all__ = ["Double", "JobTest", "Killed", "run_story", "try_every_crash"]
