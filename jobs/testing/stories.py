"""Plays a story of a test once, and again for each point at which its jobs may be killed."""

from collections.abc import Awaitable, Callable
from typing import Any

from jobs.job import Job
from jobs.testing.crashes import Crashes
from jobs.testing.job_test import JobTest

Story = Callable[[JobTest], Awaitable[None]]


async def run_story(story: Story, *kinds: type[Job], **options: Any) -> None:
    """Play a story on an empty server. `options`: as `JobTest.open`."""
    async with JobTest.open(*kinds, **options) as test:
        await story(test)


async def try_every_crash(story: Story, *kinds: type[Job], **options: Any) -> int:
    """Play a story without a crash, and then once for each point of it with a kill -9 there; each crash costs ten
    seconds of the test's clock. Returns how many points there are. Raises what the story raises, with the point.
    """
    whole = Crashes()
    await run_story(story, *kinds, crashes=whole, **options)
    for number, point in enumerate(whole.points, 1):
        try:
            await run_story(story, *kinds, crashes=Crashes(number), **options)
        except BaseException as fault:
            fault.add_note(f"with a crash at point {number} of {len(whole.points)}: {point}")
            raise
    return len(whole.points)
