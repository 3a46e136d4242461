"""A university uses Ada for a day, over the real protocols of all channels, while its processes are killed."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import ClientError

from core.redis.keys import KEYS
from tests.end_to_end.campus import API, Campus, Json
from tests.end_to_end.university import EVERYONE, NIGHT_TEACHER, TEACHER, University, contacts, reachable
from tests.support.waiting import until

STUDENTS, MANY_STUDENTS = 2_000, 9_990
"""In the short and in the long form; a delivery has at most 10,000 recipients."""


@pytest.mark.row("D-01", "D-02", "D-08", "D-09", "D-31", "D-33")
@pytest.mark.timeout(600)
async def test_a_university_works_while_all_its_processes_are_killed(campus: Campus, long_form: bool) -> None:
    university = University(MANY_STUDENTS if long_form else STUDENTS)
    await campus.start()
    await import_people(campus, university)
    await write_to_everyone(campus, university)
    await hold_a_teacher_to_the_quota(campus, university)
    await announce_the_morning(campus)
    await campus.installation.audit()


async def import_people(campus: Campus, university: University) -> None:
    """The API is killed in the middle of the first file, which is then imported again."""
    files = dict(university.files())
    importing = asyncio.create_task(campus.api.import_csv("users", files["users"]))
    await until(lambda: is_importing(campus), within=20, every=0.001)
    await campus.kill_and_start(API)
    with pytest.raises(ClientError):
        await importing
    await until(lambda: is_idle(campus), within=30)
    for kind, text in files.items():
        status, result = await campus.api.import_csv(kind, text)
        assert (status, result["created"] + result["updated"]) == (200, len(text.splitlines()) - 1)


async def is_importing(campus: Campus) -> bool:
    return bool(await campus.installation.core.redis.hget(KEYS["import"].at(0, "default"), "next"))


async def is_idle(campus: Campus) -> bool:
    return bool((await campus.api.request("GET", "/v1/import"))[1]["state"] == "idle")


async def write_to_everyone(campus: Campus, university: University) -> None:
    """All processes and the server are killed while the messages are being sent."""
    text = "Занятий завтра не будет"
    status, accepted = await campus.post(
        {"sender": {"id": "dean"}, "text": text, "recipients": [{"supergroup": EVERYONE}]}
    )
    assert (status, accepted["recipients"]) == (202, university.count)
    await until(lambda: campus.copies(text).total() > university.count // 20, within=30)
    await campus.kill_and_start_everything()
    history = await campus.finished(accepted["id"], within=120)
    students = range(1, university.count + 1)
    assert history["counts"]["no_contact"] >= len(set(students) - reachable(students))
    assert set(campus.copies(text).values()) == {1}, "nobody receives a message twice"
    for recipient in history["recipients"]:
        outcomes = {name: one["status"] for name, one in recipient["outcomes"].items()}
        assert {name for name, status in outcomes.items() if status != "no_contact"} == contacts(recipient["id"]).keys()
        assert set(outcomes.values()) <= {"sent", "delivered", "unknown", "no_contact"}


def order(sender: int, text: str, groups: Sequence[str]) -> Json:
    recipients = [{"group": group} for group in groups]
    return {"sender": {"id": sender, "role": "trainer"}, "text": text, "recipients": recipients}


async def hold_a_teacher_to_the_quota(campus: Campus, university: University) -> None:
    """Two overlapping groups; the fifth delivery is refused, also after the API was killed."""
    groups = university.groups[:2]
    for number in range(4):
        status, accepted = await campus.post(order(TEACHER, f"Занятие {number}", groups))
        assert (status, accepted["recipients"]) == (202, len(university.members(*groups)))
    await campus.kill_and_start(API)
    status, refused = await campus.post(order(TEACHER, "Занятие 5", groups))
    assert (status, refused["code"]) == (429, "QUOTA_EXCEEDED")
    history = await campus.finished(accepted["id"])
    in_both = [one for one in history["recipients"] if len(one["origin"]) == len(groups)]
    assert {one["id"] for one in in_both} == university.members(groups[0]) & university.members(groups[1])
    assert not campus.copies("Занятие 5")


async def announce_the_morning(campus: Campus) -> None:
    """It is night: what is sent now waits until the morning, and the caller is told."""
    now = datetime.now(UTC)
    campus.settings["ADA_QUIET_HOURS"] = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=2):%H:%M}"
    await campus.kill_and_start(API)
    status, accepted = await campus.post(order(NIGHT_TEACHER, "Доброе утро", ["IVT-1"]))
    assert (status, accepted["state"]) == (202, "scheduled")
    assert datetime.fromisoformat(accepted["deliver_at"]) > now + timedelta(hours=1, minutes=58)
    assert datetime.fromisoformat(accepted["moved_from"]) < now + timedelta(minutes=5)
    assert not campus.copies("Доброе утро")
