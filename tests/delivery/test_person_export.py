"""The export of a person: what is stored of it goes into one file, and nothing of anybody else."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.threads.threads import Inbox, ThreadMessage
from scenarios.schema.variables import Change
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.variables import Variables
from tests.delivery.conftest import Api, Couriers
from tests.delivery.test_directory_commands import Ada, ada
from tests.delivery.test_people_signed_in import people
from tests.delivery.test_threads import written
from tests.support.servers import several_shards

__all__ = ["ada", "people", "several_shards"]

WHERE, WHY = "/v1/users/4/export", {"Ada-Reason": "P4 has asked for it"}


async def lines(api: Api, where: str = WHERE) -> list[dict[str, Any]]:
    exported = await api.call("GET", where, headers=WHY)
    assert (exported.status, exported.headers["Content-Type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in exported.body.splitlines()]


async def asked(api: Api, person: int) -> str:
    """A delivery to a person that asks a question."""
    body = {
        "sender": {"id": 1},
        "text": "For {{name}}",
        "personal": True,
        "recipients": [{"id": person}],
        "channels": ["sms"],
    }
    question = {"kind": "choice", "options": [{"key": "yes", "text": "I come"}, {"key": "no", "text": "No"}]}
    made = await api.call("POST", "/v1/deliveries", {**body, "answer": question})
    assert made.status == 202, made.body
    return str(made.json["id"])


@pytest.mark.usefixtures("people")
async def test_the_export_of_a_person_has_its_deliveries_answers_and_threads(api: Api, courier: Couriers) -> None:
    await courier("sms")
    mine, _ = await asked(api, 4), await asked(api, 2)
    entered = {"recipient": 4, "value": "yes"}
    assert (await api.call("POST", f"/v1/deliveries/{mine}/answers", entered)).status == 200
    added, threads = await written(api), api.services.core.threads
    answer = ThreadMessage(0, "staff", 0, 1, "Good day")
    await threads.add_of_staff(await threads.find("default", added.thread), "a1", answer)
    for number in range(120):
        await written(api, f"To P2: {number}", Inbox("user", "2"), f"p{number}")
    person, *rest = await lines(api)
    assert (person["user"]["id"], person["user"]["name"]) == (4, "P4")
    (delivery,) = [one for one in rest if "delivery" in one]
    assert (delivery["delivery"]["id"], delivery["delivery"]["text"]) == (mine, "For P4")
    assert (delivery["answer"]["state"], delivery["answer"]["value"]) == ("answered", "yes")
    assert sorted(one["thread"]["inbox"] for one in rest if "thread" in one) == ["user:1", "user:2"]
    texts = [one["message"]["text"] for one in rest if "message" in one]
    assert sorted(texts) == sorted(["Hello", "Good day", *(f"To P2: {number}" for number in range(120))])
    first = next(place for place, one in enumerate(rest) if one.get("thread", {}).get("inbox") == "user:1")
    assert [one["message"]["text"] for one in rest[first + 1 : first + 3]] == ["Good day", "Hello"]


@pytest.mark.usefixtures("people")
async def test_the_export_has_the_inbox_of_the_person_and_what_bots_have_stored(api: Api) -> None:
    await written(api)
    store, contacts = api.services.core.store, (await api.call("GET", "/v1/users/1")).json["contacts"]
    channel, (address, *_) = next(iter(contacts.items()))
    asked = {"color": FormAnswer(0, "red", 1)}
    await Forms(store).note("default", "survey", f"{channel}:{address}", asked)
    change = Change("person", "course", "set", "physics", 0)
    await Variables(store, "default").change("s", {"channel": channel, "user_id": address}, [change])
    _, thread, message, remembered = await lines(api, "/v1/users/1/export")
    assert (thread["thread"]["inbox"], message["message"]["text"]) == ("user:1", "Hello")
    stored = {"variables": {"course": "physics"}, "forms": {"survey": {"color": "red"}}}
    assert remembered == {"remembered": {"person": f"{channel}:{address}", **stored}}


@pytest.mark.usefixtures("people")
async def test_what_a_merged_person_has_written_is_in_the_export_of_the_one_that_stays(api: Api) -> None:
    await written(api)
    assert (await api.call("POST", "/v1/users/2:merge", {"other": 4})).status == 200
    assert [one["message"]["text"] for one in await lines(api, "/v1/users/2/export") if "message" in one] == ["Hello"]
    assert (await api.call("GET", WHERE, headers=WHY)).code == "USER_NOT_FOUND"


@pytest.mark.usefixtures("people")
async def test_an_export_of_a_person_needs_a_reason_and_is_logged(api: Api, ada: Ada, tmp_path: Path) -> None:
    await written(api)
    refused = await api.call("GET", WHERE)
    assert (refused.status, refused.code) == (403, "REASON_MISSING")
    code, out, err = await ada("export", "person", "4", "p4.ndjson", "--reason", "P4 wants it")
    assert (code, out, err) == (0, "wrote 3 rows to p4.ndjson\n", "")
    assert [list(json.loads(line)) for line in (tmp_path / "p4.ndjson").read_text().splitlines()] == [
        ["user"],
        ["thread"],
        ["message"],
    ]
    logged = (await api.call("GET", "/v1/actions")).json["actions"][0]
    assert (logged["what"], logged["via"], logged["why"]) == ("export 4", "cli", "P4 wants it")
