"""A university uses Ada for a day, over the real protocols of all channels, while its processes are killed."""

import asyncio

import pytest
from aiohttp import ClientError

from core.redis.keys import KEYS
from tests.support.waiting import until
from tests.system.end_to_end.campus import API, Campus
from tests.system.end_to_end.dialogs import teach_by_sms, teach_by_telegram, write_at_night
from tests.system.end_to_end.university import EVERYONE, University, contacts, reachable

STUDENTS, MANY_STUDENTS = 2_000, 10_000
"""In the short and in the long form; a delivery has at most 10,000 recipients."""


@pytest.mark.timeout(900)
async def test_a_university_works_while_all_its_processes_are_killed(campus: Campus, long_form: bool) -> None:
    university = University(MANY_STUDENTS if long_form else STUDENTS)
    await campus.start()
    await import_people(campus, university)
    await write_to_everyone(campus, university)
    await teach_by_telegram(campus, university)
    phone = await teach_by_sms(campus, university)
    await write_at_night(campus, university, phone)
    await campus.installation.audit()


async def import_people(campus: Campus, university: University) -> None:
    """The API is killed in the middle of the first file, which is then imported again."""
    files = dict(university.files())
    importing = asyncio.create_task(campus.api.import_csv("users", files["users"]))
    await until(lambda: is_importing(campus), within=20, every=0.001)
    await campus.kill_and_start(API)
    with pytest.raises(ClientError):
        await importing
    await until(lambda: is_idle(campus))
    for kind, text in files.items():
        status, result = await campus.api.import_csv(kind, text)
        assert (status, result["created"] + result["updated"] + result["unchanged"]) == (
            200,
            len(text.splitlines()) - 1,
        )


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
    await until(lambda: campus.copies(text).total() > university.count // 20)
    await campus.kill_and_start_everything()
    history = await campus.finished(accepted["id"], within=120)
    students = range(1, university.count + 1)
    assert history["counts"]["no_contact"] >= len(set(students) - reachable(students))
    assert set(campus.copies(text).values()) == {1}, "each person receives a message once"
    for recipient in history["recipients"]:
        outcomes = {name: one["status"] for name, one in recipient["outcomes"].items()}
        assert {name for name, status in outcomes.items() if status != "no_contact"} == contacts(recipient["id"]).keys()
        assert set(outcomes.values()) <= {"sent", "delivered", "unknown", "no_contact"}
