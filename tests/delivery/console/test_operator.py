"""An operator manages the queue: tubes with pauses, tasks with their errors, dead letters, lanes."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cli.processes.embedded_valkey import running_url
from core.model.parts import PartState, UpPart
from core.monitoring import SampleStep
from core.monitoring.figures import Samples
from core.processes import ProcessRecord, ProcessRegister, ProcessState
from core.queue import NewTask, Queue, SettleResult, connect
from core.queue.task import ClaimRequest
from core.redis.keys import KEYS
from core.redis.store import Store
from tests.delivery.console.conftest import Person
from tests.support.stack import HOUR
from tests.support.waiting import until


def url_of(person: Person) -> str:
    url = running_url(person.running.installation.directory / "data" / "valkey")
    assert url
    return url


IN_THE_MENU = "document.querySelector('#menu a[href=\"#/dead_letters\"] .tag')?.innerText"
COUNTDOWN = "document.querySelector('[data-until]')?.innerText"
DELAY = "[...document.querySelectorAll('figure')].find((one) => one.innerText.includes('How long tasks wait'))"


async def record_some(person: Person) -> None:
    """Record ten minutes of figures, with a gap, in which messages were sent and half of them did not arrive."""
    store = await Store.open(url_of(person))
    try:
        samples, now = Samples(store, Queue(store)), int(time.time() * 1000)
        for seconds in (*range(600, 400, -10), *range(200, -10, -10)):
            for name, n in (("sms:sent|", seconds % 7), ("sms:failed|blocked", seconds % 11), ("vk:failed|privacy", 1)):
                await store.command("HINCRBY", KEYS["outcome_counts"].at(0), name, n)
            for name, n in (("letters:promoted", 4), ("letters:lag_ms", 1000)):
                await store.command("HINCRBY", KEYS["counters"].at(0), name, n)
            await samples.save(SampleStep.FINE, await samples.take(now - 1000 * seconds))
    finally:
        await store.close()


async def bury_some(person: Person, tube: str, count: int) -> None:
    """Put tasks into a tube and bury them with an error."""
    async with connect(url_of(person)) as client:
        await client.put_many(tube, [NewTask(f"text {n}", user=f"user {n}", kind="speech") for n in range(count)])
        claim = await client.queue.claim(0, ClaimRequest(tube, "a worker", count, HOUR, HOUR))
        for task in claim.tasks:
            await client.queue.settle(task, result=SettleResult.BURY, error="ModelMissing: no voice 7")


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
    await person.browser.wait_for(f"Number({IN_THE_MENU}) >= 3")
    await person.browser.run("document.querySelector('li.card button.primary').click()")
    await person.confirms()
    await person.sees("3 tasks changed")


async def test_an_operator_sets_one_task_aside_tries_it_again_and_drops_a_group(person: Person) -> None:
    await bury_some(person, "pictures", 2)
    async with connect(url_of(person)) as client:
        task = await client.put("portraits", "x", user="Mona")
    await person.visit(f"task/{task}")
    for button, seen in (("Set aside", "buried"), ("Try again", "ready"), ("Cancel", "no longer kept")):
        await person.presses(button)
        await person.confirms()
        await person.browser.wait_for(f"document.querySelector('#content').innerText.includes({seen!r})")
    await person.go("dead_letters")
    card = "[...document.querySelectorAll('li.card')].find((one) => one.innerText.includes('pictures'))"
    await person.browser.wait_for(f"Boolean({card})")
    await person.browser.run(f"{card}.querySelector('.danger').click()")
    await person.sees("Cancel 2 tasks?")
    await person.confirms()
    await person.browser.wait_for(f"!{card}")
    found = await person.running.call("GET", "/v1/queue/tasks?tube=pictures&state=buried")
    assert found["tasks"] == []


async def test_an_operator_pauses_a_tube_with_a_reason_and_resumes_it(person: Person) -> None:
    await bury_some(person, "pictures", 1)
    await person.visit("tubes")
    await person.sees("pictures")
    await person.browser.run(
        "[...document.querySelectorAll('.rows .row')].find((one) => one.innerText.includes('pictures'))"
        ".querySelector('button:not(.plain)').click()"
    )
    await person.writes("Reason", "the provider is down")
    await person.confirms()
    await person.sees("the provider is down")
    await person.keeps_picture("tubes")
    await person.browser.run(
        "[...document.querySelectorAll('.rows .row')].find((one) => one.innerText.includes('pictures'))"
        ".querySelector('button:not(.plain)').click()"
    )
    await person.sees("pictures goes on")
    await person.sees_no("the provider is down")


async def test_an_operator_sees_why_a_process_halted_and_which_command_is_missing(person: Person) -> None:
    url = running_url(person.running.installation.directory / "data" / "valkey")
    assert url
    await person.visit("processes")
    await person.sees("Courier of SMS")
    async with connect(url) as client:
        await client.put("jobs.hunt", "x")
        now = int(time.time() * 1000)
        halted = ProcessRecord(
            id="halted",
            kind="courier",
            name="vk",
            host="a machine",
            pid=7,
            version="0.1.0",
            started=now - 60_000,
            beat=now - 60_000,
            since=now,
            state=ProcessState.HALTED,
            reason="the mail server answers 535: check the user name and the password in ADA_SMTP_URL",
            account="the school",
            balance=12.5,
            low_balance=100.0,
        )
        store = await Store.open(url)
        await ProcessRegister(store).write(halted)
        part = UpPart(name="bot vk", state=PartState.STOPPED, at=now, since=now, ends=1, reason="no such community")
        busy = replace(
            halted,
            id="busy",
            name="a pigeon",
            state=ProcessState.RUNNING,
            beat=now,
            reason="",
            faulty_parts=(part,),
        )
        await ProcessRegister(store).write(busy)
        await client.queue.throttle("a pigeon", "account:the school", timedelta(seconds=50))
        await store.command("HSET", KEYS["rate"].at(0, "a pigeon", "the school"), "rate", "7.5")
        await store.close()
    await person.sees("the mail server answers 535: check the user name")  # the page was notified
    await person.sees("Balance 12.5: the money is running out")
    await person.visit("processes")
    await person.sees("./ada jobs")
    await person.sees("bot vk (a machine) should run and does not since")
    await person.sees("no such community")
    await person.sees("7.5 calls a second at most")
    left = await person.browser.run(COUNTDOWN)
    assert "sec" in left
    await person.browser.wait_for(f"{COUNTDOWN} !== {left!r}")
    await person.keeps_picture("processes")
    await person.visit("processes", language="ru", width=390)
    await person.sees("почтовый сервер отвечает 535: проверьте имя и пароль в ADA_SMTP_URL")


async def test_the_overview_says_what_is_wrong_and_leads_there(person: Person) -> None:
    await bury_some(person, "overview", 2)
    await record_some(person)
    await person.visit("")
    await person.sees("Needs attention first")
    await person.sees("SMS: ")
    await person.sees("Most frequent: the recipient has blocked the sender")
    lines = "document.querySelectorAll('figure svg path[d]').length"
    await person.browser.wait_for(f"{lines} === 8")
    gaps = "document.querySelector('path.line-0').getAttribute('d').match(/M/g).length"
    assert await person.browser.run(gaps) >= 2
    await person.keeps_picture("overview-figures")
    assert await person.browser.run(f"{DELAY}.querySelector('path.line-1').getAttribute('d').match(/L/g).length") > 8
    await person.sees("late on average when due: 0.3 sec")
    await person.browser.run(f"{DELAY}.querySelector('summary').click()")
    await person.browser.wait_for(f"{DELAY}.querySelector('details[open] tbody').innerText.includes('0.3 sec')")
    await person.chooses("Time", "week")
    await person.browser.wait_for("location.hash.includes('span=week')")
    await person.chooses("Time", "hour")
    await person.presses("As a table")
    await person.browser.wait_for("document.querySelector('figure details[open] tbody').rows.length >= 8")
    await person.browser.run("document.querySelector('a[href=\"#/dead_letters\"]:not(nav a)').click()")
    await person.sees("ModelMissing: no voice #")


async def test_an_operator_sees_a_lane_and_changes_everything_that_was_found(person: Person) -> None:
    async with connect(url_of(person)) as client:
        await client.put_many("letters", [NewTask(f"text {n}", user=f"user {n}", lane="chat 7") for n in range(4)])
    await person.visit("lanes")
    await person.sees("chat 7")
    await person.presses("chat 7")
    await person.sees("letters: 3 tasks wait behind the first.")
    await person.browser.run("document.querySelectorAll('.rows .row a')[1].click()")
    await person.sees("1 task of its lane is before it.")
    await person.sees("What happened when")
    await person.keeps_picture("task")
    await person.go("tubes")
    pace = "document.querySelector('button[aria-label^=\"Pace of letters\"]')"
    await person.browser.wait_for(f"Boolean({pace})")
    await person.browser.run(f"{pace}.click()")
    await person.writes("Tasks per second", "2.5")
    await person.confirms()
    await person.browser.wait_for(f"{pace}.ariaLabel.includes('2.5 per second')")
    await person.presses("Set a weight")
    await person.writes("Tenant", "a school")
    await person.writes("Turns in a round", "3")
    await person.confirms()
    await person.sees("a school: 3 turns")
    await person.presses("a school: 3 turns")
    await person.writes("Turns in a round", "1")
    await person.confirms()
    await person.sees_no("a school: 3 turns")
    await person.go("tasks?tube=letters&state=locked")
    await person.sees("3 in all")
    await person.presses("Set all of these aside")
    await person.sees("Set 3 tasks aside?")
    await person.confirms()
    await person.sees("3 tasks changed")
    await person.go("tasks?tube=letters&state=buried")
    await person.presses("Try all of these again")
    await person.sees("Try 3 tasks again?")
    await person.confirms()
    await person.sees("Nothing found")
    await person.go("lanes/letters/chat%207")
    await person.sees("letters: 3 tasks wait behind the first.")


async def test_an_operator_starts_an_audit_and_repairs_what_was_shown(person: Person, store: Store) -> None:
    kinds = KEYS["kinds"].at(0)
    await store.command("ZADD", kinds, 0, "stranger")
    card = f"[...document.querySelectorAll('.cards .card')].find((one) => one.innerText.includes({kinds!r}))"
    await person.visit("audit")
    await person.presses("Start an audit")
    await person.browser.wait_for(f"Boolean({card}?.querySelector('button'))")
    await person.keeps_picture("audit")
    await person.browser.run(f"{card}.querySelector('button').click()")
    await person.browser.wait_for("document.querySelector('dialog[open]')?.innerText.includes('stranger')")
    assert await store.command("ZSCORE", kinds, "stranger") is not None, "nothing is repaired before it is confirmed"
    await person.confirms()
    await person.browser.wait_for(f"{card}.innerText.includes('repaired')")
    assert await store.command("ZSCORE", kinds, "stranger") is None


async def courier_of(person: Person, channel: str) -> dict[str, Any]:
    """The process that sends in a channel, as the API shows it. Another test leaves one that has halted."""
    processes = (await person.running.call("GET", "/v1/processes"))["processes"]
    wanted = ("courier", channel, "running")
    return next((one for one in processes if (one["kind"], one["name"], one["state"]) == wanted), {})


async def test_an_operator_sees_from_where_accounts_come_and_tests_one(person: Person) -> None:
    await person.visit("home", language="ru", width=390)
    await person.browser.run("window.setInterval = () => 0, 1")  # so nothing but the stream of changes shows the answer
    await person.go("accounts")
    await person.sees("Отправляет как")
    await person.browser.wait_for("Boolean(document.querySelector('.badge.live'))")
    account = (await courier_of(person, "vk"))["account"]
    await person.sees(account)
    await person.sees("ADA_VK_TOKEN откуда: окружение")
    before = await answered(person, "vk")
    panel = "[...document.querySelectorAll('li')].find((one) => one.innerText.startsWith('ВКонтакте'))"
    await person.browser.run(f"{panel}.querySelector('button').click()")
    await person.sees("Спрашиваем провайдера")
    await until(lambda: is_tested_since(person, "vk", before))
    await person.browser.wait_for(f"{panel}.querySelector('time').dateTime !== '{before}'")
    assert "Изменить" not in await person.browser.run(f"{panel}.innerText"), "it is changed where it is set"


async def answered(person: Person, channel: str) -> str:
    accounts = (await person.running.call("GET", "/v1/accounts"))["accounts"]
    return next(str(one["answered"]) for one in accounts if one["channel"] == channel)


async def is_tested_since(person: Person, channel: str, before: str) -> bool:
    return bool(await answered(person, channel) > before)


async def is_quiet(person: Person, quiet: bool) -> bool:
    return bool((await courier_of(person, "max"))["is_quiet"]) is quiet


async def has_another_pid(person: Person, pid: int) -> bool:
    found = await courier_of(person, "max")
    return bool(found) and bool(found["pid"] != pid)


async def test_a_worker_is_quieted_resumed_and_stopped_from_the_page(person: Person) -> None:
    await person.visit("processes")
    rows = "[...document.querySelectorAll('[role=row]')]"
    row = f"{rows}.find((one) => one.innerText.includes('Courier of MAX'))"
    await person.browser.wait_for(f"Boolean({row})")
    await person.browser.run(f"{row}.querySelector('button').click()")
    await until(lambda: is_quiet(person, True))
    await person.sees("Take tasks again")
    recipient = {"id": 7, "contacts": {"max": "300001"}}
    message = {"sender": {"id": 1}, "text": "Later", "recipients": [recipient], "channels": ["max"]}
    sent = await person.running.call("POST", "/v1/deliveries", message)
    await person.presses("Take tasks again")
    await until(lambda: is_quiet(person, False))
    await until(lambda: is_reached(person, sent["id"]))
    pid = (await courier_of(person, "max"))["pid"]
    await person.browser.run(f"{row}.querySelector('button.danger').click()")
    await person.sees("It finishes what it has taken")
    await person.confirms()
    await until(lambda: has_another_pid(person, pid), within=60)


async def is_reached(person: Person, delivery: str) -> bool:
    found = await person.running.call("GET", f"/v1/deliveries/{delivery}")
    return bool(found["verdict"] == "all_reached")


async def test_tubes_with_work_stand_first_and_one_shows_its_last_hour(person: Person, axe_source: str) -> None:
    await bury_some(person, "with-work", 1)
    async with connect(url_of(person)) as client:
        await client.put_many("for-later", [NewTask("a", due=datetime.now(UTC) + HOUR)])
    await person.visit("tubes", language="ru", width=390)
    await person.sees("выполняется сейчас:")
    rate = "document.querySelector('button[aria-label^=\"Показать скорость with-work:\"]')"
    await person.browser.wait_for(f"Boolean({rate})")
    await person.keeps_picture("tubes-with-work-ru-390")
    assert await person.barriers(axe_source) == []
    rows = await person.browser.run("document.querySelectorAll('.rows .row').length")
    idle = "[...document.querySelectorAll('main button')].find((one) => one.innerText.includes('свобод'))"
    await person.browser.run(f"{idle}.click()")
    await person.browser.wait_for(f"document.querySelectorAll('.rows .row').length > {rows}")
    await person.sees("Скрыть свободные очереди")
    await person.browser.run(f"{rate}.click()")
    await person.sees("Последний час: with-work")
    await person.keeps_picture("tube-curve")
    await person.visit("tasks?state=waiting&tube=for-later")
    await person.sees("in 59 minutes")


@pytest.mark.parametrize(
    ("language", "width", "button", "stop", "stopped"),
    [
        ("ru", 390, "Отложить все эти", "Остановить", "Остановлено: остальное не тронуто."),
        ("en", 1280, "Set all of these aside", "Stop here", "Stopped: the others stay as they were."),
    ],
)
async def test_a_change_of_many_tasks_says_what_it_covers_shows_how_far_it_is_and_is_stopped_as_one_entry(
    person: Person, axe_source: str, language: str, width: int, button: str, stop: str, stopped: str
) -> None:
    tube = f"many-{uuid.uuid4().hex[:6]}"
    async with connect(url_of(person)) as client:
        await client.put_many(tube, [NewTask("text")] * 1200)
    await person.visit(f"tasks?tube={tube}&state=ready", language=language, width=width)
    await person.presses(button)
    await person.sees(tube)
    assert await person.barriers(axe_source) == []
    await person.keeps_picture(f"bulk-{language}-{width}")
    await person.browser.run("document.querySelector('dialog [name=reason]').value = 'спам'")
    await person.browser.run("document.querySelector('dialog [name=typed]').value = '1200'")
    after_the_first_step = """(() => { const usual = fetch; window.fetch = async (...all) => {
        if (all[0].includes(":bury") && document.querySelector("dialog [role=status]").textContent)
            await new Promise((go) => { window.goOn = go; });
        return usual(...all); } })()"""
    await person.browser.run(after_the_first_step)
    await person.confirms()
    await person.browser.wait_for("Boolean(window.goOn)")
    state = await person.browser.run("[document.querySelector('dialog progress').value, "
                                     "document.querySelector('dialog [role=status]').innerText].join(' ')")  # fmt: skip
    assert state.replace("\xa0", "").replace(",", "").startswith("500 500 ")
    await person.keeps_picture(f"bulk-half-{language}-{width}")
    await person.presses(stop)
    await person.browser.run("window.goOn()")
    await person.sees(stopped)
    (action, *_) = (await person.running.call("GET", "/v1/actions"))["actions"]
    assert (action["count"], action["filter"], action["why"]) == (1000, f"tube={tube} state=ready", "спам")
    assert action["via"] == "console"
    await person.visit("actions", language=language, width=width)
    await person.sees(f"tube={tube} state=ready")
    await person.keeps_picture(f"actions-bulk-{language}-{width}")
    await person.running.call("POST", "/v1/queue/tasks:cancel", {"tube": tube, "before": 2**50, "expected": 1200})
