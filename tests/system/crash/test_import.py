"""A process or the server is killed in the middle of an import: afterwards all rows are there, or none."""

import asyncio

import pytest
from aiohttp import ClientError

from core.redis.keys import KEYS
from tests.support.waiting import until
from tests.system.crash.api_client import ApiClient
from tests.system.crash.installation import Installation

TENANT = "default"
COUNT = 5_000
PEOPLE = "id,name,email,contacts.telegram\n" + "".join(
    f"{n},Имя {n},p{n}@example.org,{100_000 + n}\n" for n in range(COUNT)
)


async def people(installation: Installation) -> tuple[int, int, int]:
    """How many people, e-mail addresses and contacts the directory has."""
    redis = installation.core.redis
    users, emails, contacts = (KEYS[name].at(0, TENANT) for name in ("userids", "emails", "contacts"))
    return await redis.zcard(users), await redis.hlen(emails), await redis.hlen(contacts)


async def is_at(installation: Installation, state: str) -> bool:
    """Whether the import is in this state and some pages are done."""
    found, done, following = await installation.core.redis.hmget(KEYS["import"].at(0, TENANT), "state", "done", "next")
    return found == state and int((following if state == "writing" else done) or 0) > 0


async def is_idle(api: ApiClient) -> bool:
    return bool((await api.request("GET", "/v1/import"))[1]["state"] == "idle")


@pytest.mark.parametrize(("state", "expected"), [("checking", 0), ("writing", COUNT)])
async def test_after_the_api_is_killed_in_the_middle_all_rows_are_there_or_none(
    installation: Installation, state: str, expected: int
) -> None:
    process = installation.start_api()
    importing = asyncio.create_task((await installation.client_of(process)).import_csv("users", PEOPLE))
    await until(lambda: is_at(installation, state), within=20, every=0.001)
    process.kill()
    with pytest.raises(ClientError):
        await importing
    assert await people(installation) != (COUNT, COUNT, COUNT)
    if state == "checking":
        await end_lease(installation)
    api = await installation.client_of(installation.start_api())
    await until(lambda: is_idle(api))
    assert await people(installation) == (expected, expected, expected)
    status, body = await api.import_csv("users", PEOPLE)
    assert (status, body["created"], body["updated"], body["unchanged"]) == (200, COUNT - expected, 0, expected)
    await installation.audit()


async def end_lease(installation: Installation) -> None:
    """The time passes after which an import without a process ends."""
    for name in ("import", "importpages"):
        await installation.core.redis.pexpire(KEYS[name].at(0, TENANT), 1)


async def test_an_import_goes_on_after_the_server_was_killed_and_restarted(own_installation: Installation) -> None:
    api = await own_installation.client_of(own_installation.start_api())
    importing = asyncio.create_task(api.import_csv("users", PEOPLE))
    await until(lambda: is_at(own_installation, "writing"), within=20, every=0.001)
    own_installation.server.kill()
    own_installation.server.start()
    status, body = await importing
    assert (status, body["created"]) == (200, COUNT)
    assert await people(own_installation) == (COUNT, COUNT, COUNT)
    await own_installation.audit()
