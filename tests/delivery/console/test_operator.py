"""An operator looks after the queue: tubes with pauses, tasks with their errors, dead letters by group."""

import pytest

from cli.processes.embedded_valkey import running_url
from core.queue import NewTask, SettleResult, connect
from tests.delivery.console.conftest import Person
from tests.support.stack import HOUR

CONFIRMS = "document.querySelector('dialog[open] form').requestSubmit()"


async def bury_some(person: Person, tube: str, count: int) -> None:
    """Put tasks into a tube and bury them with an error."""
    url = running_url(person.running.installation.directory / "data" / "valkey")
    assert url
    async with connect(url) as client:
        await client.put_many(tube, [NewTask(f"text {n}", user=f"user {n}", kind="speech") for n in range(count)])
        claim = await client.queue.claim(tube, "a worker", shard=0, limit=count, lease=HOUR, max_sleep=HOUR)
        for task in claim.tasks:
            await client.queue.settle(task, result=SettleResult.BURY, error="ModelMissing: no voice 7")


@pytest.mark.row("W-12", "W-13")
async def test_an_operator_finds_out_why_tasks_failed_and_has_them_tried_again(person: Person) -> None:
    await bury_some(person, "voices", 3)
    await person.visit("dead_letters")
    await person.sees("ModelMissing: no voice #")
    await person.sees("3 tasks")
    await person.keeps_picture("dead-letters")
    await person.presses("voices · speech")
    await person.sees("ModelMissing: no voice 7")
    await person.keeps_picture("tasks")
    await person.go("dead_letters")
    await person.sees("no voice #")
    await person.browser.run("document.querySelector('li.card button.primary').click()")
    await person.browser.wait_for("Boolean(document.querySelector('dialog[open]'))")
    await person.browser.run(CONFIRMS)
    await person.sees("3 tasks changed")


@pytest.mark.row("W-12")
async def test_an_operator_pauses_a_tube_with_a_reason_and_resumes_it(person: Person) -> None:
    await bury_some(person, "pictures", 1)
    await person.visit("tubes")
    await person.sees("pictures")
    await person.browser.run(
        "[...document.querySelectorAll('.rows .row')].find((one) => one.innerText.includes('pictures'))"
        ".querySelector('button').click()"
    )
    await person.writes("Reason", "the provider is down")
    await person.browser.run(CONFIRMS)
    await person.sees("the provider is down")
    await person.keeps_picture("tubes")
    await person.browser.run(
        "[...document.querySelectorAll('.rows .row')].find((one) => one.innerText.includes('pictures'))"
        ".querySelector('button').click()"
    )
    await person.sees("pictures goes on")
    await person.sees_no("the provider is down")
