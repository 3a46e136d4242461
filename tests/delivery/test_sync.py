"""`./ada sync`: a file keeps the people of its source, and a broken one changes nothing."""

import csv
import io
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from cli.client.http_client import HttpClient
from cli.command import CommandFailed
from cli.commands.directory import sync
from core.model.people import User
from tests.delivery.conftest import ADMIN, Api

HEADER = "id,name,email,contacts.sms,groups"


class Office:
    """A student information system that exports its people."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api, self.file = api, folder / "people.csv"

    async def sync(self, *rows: str, source: str = "1c", header: str = HEADER, **more: Any) -> int:
        self.file.write_text("\n".join([header, *rows]))
        options = {
            "dry_run": False,
            "many_leave": False,
            "create_groups": False,
            "mail_contact": False,
            "json": False,
            **more,
        }
        return await self.run(Namespace(source=source, file=str(self.file), **options))

    async def run(self, arguments: Namespace) -> int:
        return await sync.run(HttpClient(self.api.url, ADMIN), arguments)

    async def people(self) -> dict[str, Any]:
        return {str(one["id"]): one for one in (await self.api.call("GET", "/v1/users")).json["users"]}

    async def find(self, external_id: str) -> list[str]:
        found = (await self.api.call("GET", f"/v1/users?external_id={external_id}")).json["users"]
        return [str(one["id"]) for one in found]

    async def group(self, name: str) -> set[str]:
        found = (await self.api.call("GET", f"/v1/groups/{name}/members")).json["users"]
        return {str(one["id"]) for one in found}


@pytest.fixture
async def office(api: Api, tmp_path: Path) -> Office:
    for group in ("PHY-1", "PHY-2"):
        await api.call("POST", "/v1/groups", {"id": group})
    return Office(api, tmp_path)


ANNA, BORIS = "00042,Anna,anna@example.org,+79990000001,PHY-1", "00043,Boris,boris@example.org,,PHY-1"


async def test_a_file_brings_changes_and_regroups_its_people_and_nobody_elses(office: Office) -> None:
    await office.api.call("POST", "/v1/users", {"id": 7, "name": "By hand"})
    await office.api.call("PUT", "/v1/groups/PHY-1/members/7")
    assert await office.sync(ANNA, BORIS, dry_run=True) == 0
    assert (await office.people()).keys() == {"7"}
    assert await office.sync(ANNA, BORIS) == 0
    people = await office.people()
    assert people["1c-00042"]["external_ids"] == ["1c:00042"]
    assert await office.group("PHY-1") == {"7", "1c-00042", "1c-00043"}
    linked = {"contacts": {"sms": ["+79990000001", "+79990000009"], "telegram": ["100042"]}}
    await office.api.call("PATCH", "/v1/users/1c-00042", linked)
    assert await office.sync(ANNA.replace("Anna,", "Anna P.,").replace("PHY-1", "PHY-2"), BORIS) == 0
    anna = (await office.people())["1c-00042"]
    assert (anna["name"], anna["contacts"]) == ("Anna P.", linked["contacts"]), "what she has linked stays"
    assert (await office.group("PHY-1"), await office.group("PHY-2")) == ({"7", "1c-00043"}, {"1c-00042"})


async def test_who_has_left_is_blocked_and_known_again_when_it_comes_back(office: Office) -> None:
    three = "00044,Vera,vera@example.org,,PHY-1"
    await office.sync(ANNA, BORIS, three)
    await office.api.call("PATCH", "/v1/users/1c-00043", {"blocked": True})
    assert await office.sync(ANNA, BORIS) == 0
    people = await office.people()
    assert (people["1c-00044"]["blocked"], people["1c-00044"]["external_ids"]) == (True, ["1c-left:00044"])
    assert people["1c-00044"]["name"] == "Vera"
    assert (await office.find("1c:00044"), await office.find("1c-left:00044")) == ([], ["1c-00044"])
    assert people["1c-00043"]["blocked"], "the block of an administrator is not the source's"
    assert await office.sync(ANNA, BORIS) == 0
    assert await office.sync(ANNA, BORIS, three) == 0
    people = await office.people()
    assert (people["1c-00044"]["blocked"], people["1c-00044"]["external_ids"]) == (False, ["1c:00044"])
    assert people["1c-00043"]["blocked"]


async def test_an_empty_halved_or_broken_file_changes_nothing(office: Office) -> None:
    await office.sync(ANNA, BORIS, "00044,Vera,,,", "00045,Gleb,,,")
    before = await office.people()
    broken: list[tuple[list[str], str]] = [
        ([], "no people"),
        ([ANNA], "3 of 4 people"),
        ([ANNA, BORIS], "2 of 4 people"),
        ([ANNA, BORIS, ",Nobody,n@example.org,,"], "has no id"),
        ([ANNA, BORIS, "00044,Vera,,,,,surplus"], "cells"),
    ]
    for rows, said in broken:
        with pytest.raises(CommandFailed, match=said):
            await office.sync(*rows)
    assert await office.sync(ANNA, BORIS, "00044,Vera,anna@example.org,,") == 1
    assert await office.sync(ANNA, BORIS, "00044,Vera,,,PHY-9") == 1
    assert await office.sync(ANNA, BORIS, "00044,Vera,,,PHY-9", create_groups=True, dry_run=True) == 1
    with pytest.raises(CommandFailed, match="external_ids"):
        await office.sync("1,x", header="id,external_ids")
    with pytest.raises(CommandFailed, match="small letters"):
        await office.sync(ANNA, source="1C:x")
    with pytest.raises(CommandFailed, match="oidc"):
        await office.sync(ANNA, source="oidc")
    assert await office.people() == before
    assert await office.sync(ANNA, many_leave=True) == 0
    assert [one["blocked"] for one in (await office.people()).values()] == [False, True, True, True]


async def test_two_sources_share_a_person_and_an_account_of_a_provider_stays_bound(office: Office) -> None:
    users = office.api.services.core.directory.users
    await users.create("default", User(7, "Anna", "anna@example.org", external_ids=("oidc:x-1",)))
    await office.sync(ANNA, BORIS)
    await office.sync("7001,Anna,anna@example.org", source="isu", header="id,name,email")
    people = await office.people()
    assert people["7"]["external_ids"] == ["oidc:x-1", "1c:00042", "isu:7001"]
    assert len(people) == 2
    await office.sync("7001,Another,other@example.org", source="isu", header="id,name,email")
    assert (await office.people())["7"]["email"] == "other@example.org", "the id of the source decides, no address"
    exported = (await office.api.call("GET", "/v1/export/users")).body.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert [row["external_ids"] for row in rows if row["id"] == "7"] == ["oidc:x-1;1c:00042;isu:7001"]


async def test_the_ids_of_the_source_name_recipients_in_sending_and_cancelling(office: Office) -> None:
    await office.sync(ANNA, BORIS)
    given = {
        "sender": {"id": "dean"},
        "text": "Hi",
        "recipients": ["1c:00042", {"id": "1c:00043"}],
        "channels": ["sms"],
    }
    sent = await office.api.call("POST", "/v1/deliveries", {**given, "deliver_at": "2031-01-01T12:00:00Z", "far": True})
    where = sent.headers["Location"]
    cancelled = (await office.api.call("DELETE", f"{where}?recipient=1c:00042")).json
    people = (await office.api.call("GET", where)).json["recipients"]
    assert [one["id"] for one in people] == ["1c-00042", "1c-00043"]
    statuses = [one["outcomes"]["sms"]["status"] for one in people]
    assert (cancelled["cancelled"], statuses) == (1, ["cancelled", "no_contact"])


async def test_a_workbook_does_as_well(office: Office, tmp_path: Path) -> None:
    book, file = Workbook(), tmp_path / "people.xlsx"
    for row in (["ИД", "Фамилия", "Имя", "Почта", "Группа"], ["00042", "Петрова", "Анна", "anna@example.org", "PHY-9"]):
        book.active.append(row)
    book.save(file)
    options = {"dry_run": False, "many_leave": False, "create_groups": True, "mail_contact": False, "json": True}
    arguments = Namespace(source="1c", file=str(file), **options)
    assert await office.run(arguments) == 0
    assert (await office.people())["1c-00042"]["name"] == "Петрова Анна"
    assert await office.group("PHY-9") == {"1c-00042"}


async def test_an_external_id_belongs_to_one_person(api: Api) -> None:
    for number in (1, 2):
        assert (await api.call("POST", "/v1/users", {"id": number})).status == 201
    given = {"external_ids": ["1c:1", "isu:2"]}
    assert (await api.call("PATCH", "/v1/users/1", given)).json["external_ids"] == given["external_ids"]
    for asked, ids in (("isu:2", [1]), ("isu:3", []), ("isu:2&role=admin", []), ("isu:2&email=x@example.org", [])):
        page = (await api.call("GET", f"/v1/users?external_id={asked}")).json
        assert [one["id"] for one in page["users"]] == ids, asked
    assert (await api.call("PATCH", "/v1/users/2", {"external_ids": ["isu:2"]})).code == "EXTERNAL_ID_TAKEN"
    for wrong in ("1C:1", "isu:", "isu", "a b:1", "isu:\n"):
        refused = await api.call("PATCH", "/v1/users/2", {"external_ids": [wrong]})
        assert 400 <= refused.status < 500, wrong
    await api.call("PATCH", "/v1/users/1", {"external_ids": ["1c:1"]})
    assert (await api.call("PATCH", "/v1/users/2", {"external_ids": ["isu:2"]})).status == 200
    assert (await api.call("POST", "/v1/users/1:merge", {"other": 2})).json["user"]["external_ids"] == ["1c:1", "isu:2"]
    await api.call("DELETE", "/v1/users/1")
    assert (await api.call("POST", "/v1/users", {"id": 3, "external_ids": ["1c:1", "isu:2"]})).status == 201
    body = b"id,external_ids\n4,isu:2\n5,x:1\n6,x:1\n"
    refused = await api.call("POST", "/v1/import?kind=users", data=body, headers={"Content-Type": "text/csv"})
    assert {one["code"] for one in refused.json["errors"]} == {"EXTERNAL_ID_TAKEN"}
