"""`./ada sync`: a file keeps the people of its source, and a broken one changes nothing."""

import asyncio
import csv
import io
import itertools
import os
import time
import zipfile
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from openpyxl import Workbook

from cli.client.http_client import HttpClient
from cli.command import CommandFailed
from cli.commands.directory import sync
from cli.commands.start.people_findings import check_syncs
from cli.services import people_sources
from cli.services.people_sources import SyncRefused
from cli.settings.parsing import read_sync_lines
from core.directory.syncs import SourceState, SyncResult, owner_of
from core.errors import SetupError
from core.model.people import User
from tests.delivery.conftest import ADMIN, Api
from tests.support.waiting import until

HEADER = "id,name,email,contacts.sms,groups"

OPTIONS = dict.fromkeys(("dry_run", "many_leave", "create_groups", "mail_contact", "private", "json"), False) | {
    "every": "",
    "mapping": "",
    "secret_file": "",
}


class Office:
    """A student information system that exports its people."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api, self.file = api, folder / "people.csv"

    async def sync(self, *rows: str, source: str = "1c", header: str = HEADER, **more: Any) -> int:
        self.file.write_text("\n".join([header, *rows]))
        make_older(self.file)
        return await self.read(str(self.file), source=source, **more)

    async def read(self, place: str, *, source: str = "1c", **more: Any) -> int:
        return await self.run(Namespace(source=source, place=place, **{**OPTIONS, **more}))

    async def run(self, arguments: Namespace) -> int:
        return await sync.run(HttpClient(self.api.url, ADMIN), arguments)

    async def people(self) -> dict[str, Any]:
        return {str(one["id"]): one for one in (await self.api.call("GET", "/v1/users")).json["users"]}

    async def find(self, external_id: str) -> list[str]:
        found = (await self.api.call("GET", f"/v1/users?external_id={external_id}")).json["users"]
        return [str(one["id"]) for one in found]

    async def sources(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.api.call("GET", "/v1/syncs")).json["sources"]
        return found

    async def group(self, name: str) -> set[str]:
        found = (await self.api.call("GET", f"/v1/groups/{name}/members")).json["users"]
        return {str(one["id"]) for one in found}


def make_older(file: Path, seconds: float = 60) -> None:
    """A file that was written in the last seconds may be incomplete: a sync waits."""
    os.utime(file, (time.time() - seconds,) * 2)


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
    await office.sync(ANNA, three)
    assert (await office.people())["1c-00043"]["external_ids"] == ["1c-gone:00043"]
    await office.sync(ANNA, BORIS, three)
    boris = (await office.people())["1c-00043"]
    assert (boris["blocked"], boris["external_ids"]) == (True, ["1c:00043"]), "to leave and come back does not end it"


async def test_who_comes_back_under_another_id_is_known_by_its_address(office: Office) -> None:
    """An account that was deleted and created again: its address was taken, and nobody was synchronised any more."""
    three, again = "00044,Vera,vera@example.org,,PHY-1", "00099,Vera K.,Vera@Example.org,,PHY-1"
    await office.sync(ANNA, BORIS, three)
    await office.api.call("PATCH", "/v1/users/1c-00044", {"contacts": {"telegram": ["100044"]}})
    assert await office.sync(ANNA, BORIS) == 0
    assert await office.sync(ANNA, BORIS, again) == 0
    people = await office.people()
    vera = people["1c-00044"]
    assert (vera["external_ids"], vera["blocked"], vera["name"]) == (["1c:00099"], False, "Vera K.")
    assert (vera["contacts"], len(people)) == ({"telegram": ["100044"]}, 3)
    assert await office.group("PHY-1") == people.keys()
    assert await office.sync(ANNA, BORIS, three) == 0, "and between two runs"
    vera = (await office.people())["1c-00044"]
    assert (vera["external_ids"], vera["blocked"]) == (["1c:00044"], False)
    await office.api.call("PATCH", "/v1/users/1c-00044", {"blocked": True})
    await office.sync(ANNA, BORIS)
    assert await office.sync(ANNA, BORIS, again) == 0
    assert (await office.people())["1c-00044"]["blocked"], "the block of an administrator stays"
    await office.sync(ANNA, BORIS, "00100,Vera,vera@example.org,,", again.replace("Vera@Example.org", ""))
    assert (await office.people())["1c-00044"]["external_ids"] == ["1c:00099"], "whose id is in the file is not taken"


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
    assert await office.sync(ANNA, BORIS, "00044,Vera,,,PHY-9", dry_run=True) == 1, "as without --dry-run"
    assert await office.sync(ANNA, BORIS, "00044,Vera,,,PHY-9", create_groups=True, dry_run=True) == 0
    assert (await office.api.call("GET", "/v1/groups/PHY-9")).status == 404
    with pytest.raises(CommandFailed, match="external_ids"):
        await office.sync("1,x", header="id,external_ids")
    with pytest.raises(CommandFailed, match="small letters"):
        await office.sync(ANNA, source="1C:x")
    with pytest.raises(CommandFailed, match="oidc"):
        await office.sync(ANNA, source="oidc")
    assert await office.people() == before
    assert await office.sync(ANNA, many_leave=True) == 0
    assert [one["blocked"] for one in (await office.people()).values()] == [False, True, True, True]


async def test_a_source_that_has_lost_a_column_or_its_groups_changes_nothing(office: Office) -> None:
    """The export has lost a right at the other system: all people are there, and not what it said of them."""
    header = "id,name,email,role,fields.room,groups,owns"
    whole = [f"{n},P {n},p{n}@example.org,trainer,R-{n},PHY-1,PHY-2" for n in range(6)]
    await office.sync(*whole, header=header)
    before, groups = await office.people(), await office.group("PHY-1")
    for number, column in enumerate(header.split(",")[1:], 1):
        cells = [row.split(",") for row in whole]
        empty = [",".join([*row[:number], "", *row[number + 1 :]]) for row in cells]
        for dry_run in (False, True):
            with pytest.raises(SyncRefused, match=f"6 of 6 people would lose all of '{column}'"):
                await office.sync(*empty, header=header, dry_run=dry_run)
    assert await office.people() == before
    assert await office.group("PHY-1") == groups == before.keys()
    for person in before:
        owned = (await office.api.call("GET", f"/v1/ownerships?user={person}")).json["ownerships"]
        assert [one["id"] for one in owned] == ["PHY-2"]
    await office.sync(*(row.replace("PHY-1", "PHY-2") for row in whole), header=header)
    assert await office.group("PHY-2") == before.keys(), "who goes to another group has lost none"
    assert await office.sync(*(row.replace("PHY-1", "") for row in whole), header=header, many_leave=True) == 0
    assert await office.group("PHY-1") == set()


async def test_two_sources_share_a_person_and_an_account_of_a_provider_stays_bound(office: Office) -> None:
    users = office.api.services.core.directory.users
    await users.create("default", User(7, "Anna", "anna@example.org", external_ids=("oidc:x-1",)))
    await office.sync(ANNA, BORIS)
    await office.sync("7001,Anna,anna@example.org", source="isu", header="id,name,email")
    people = await office.people()
    assert people["7"]["external_ids"] == ["oidc:x-1", "1c:00042", "isu:7001"]
    assert len(people) == 2
    await office.sync("7001,Another,other@example.org,К-1", source="isu", header="id,name,email,fields.room")
    changed = (await office.people())["7"]
    assert (changed["email"], changed["fields"]) == ("anna@example.org", {"room": "К-1"}), "each owns its columns"
    (isu,) = [one for one in await office.sources() if one["source"] == "isu"]
    assert isu["last"]["disagreements"] == ["7 name", "7 email"]
    await office.sync(BORIS, ANNA.replace("anna@", "other@"))
    assert (await office.people())["7"]["email"] == "other@example.org", "the id of the source decides, no address"
    await office.sync(BORIS)
    left = (await office.people())["7"]
    assert (left["blocked"], left["external_ids"]) == (False, ["oidc:x-1", "1c-left:00042", "isu:7001"])
    await office.sync("7001,Another,new@example.org", source="isu", header="id,name,email")
    assert (await office.people())["7"]["email"] == "new@example.org", "who has left owns nothing"
    exported = (await office.api.call("GET", "/v1/export/users")).body.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert [row["external_ids"] for row in rows if row["id"] == "7"] == ["oidc:x-1;1c-left:00042;isu:7001"]
    await office.sync(BORIS, ANNA)
    assert not (await office.people())["7"]["blocked"]
    await office.sync("7002,Gleb,g@example.org", source="isu", header="id,name,email", many_leave=True)
    await office.sync(BORIS)
    assert (await office.people())["7"]["blocked"], "no source has the person any more"


async def test_of_two_sources_that_name_a_group_the_first_one_of_a_person_says_whether_it_is_in(office: Office) -> None:
    """Each run of one source undid what the other one had done, every hour."""
    header = "id,email,groups"
    first = ["1,anna@example.org,PHY-1", "2,boris@example.org,PHY-1", "3,vera@example.org,"]
    other = ["a,anna@example.org,", "b,gleb@example.org,PHY-1", "c,vera@example.org,PHY-1"]
    await office.sync(*first, header=header)
    await office.sync(*other, source="dorm", header=header)
    together = {"1c-1", "1c-2", "dorm-b"}
    assert await office.group("PHY-1") == together
    for source, rows in (("1c", first), ("dorm", other), ("1c", first)):
        await office.sync(*rows, source=source, header=header)
        assert await office.group("PHY-1") == together, source
    (dorm,) = [one for one in await office.sources() if one["source"] == "dorm"]
    assert dorm["last"]["disagreements"] == ["1c-1 groups", "1c-3 groups"]
    await office.sync(*(row.replace("PHY-1", "PHY-2") for row in first), header=header)
    assert (await office.group("PHY-1"), await office.group("PHY-2")) == ({"dorm-b"}, {"1c-1", "1c-2"})


async def test_of_two_sources_that_name_a_group_the_first_one_of_a_person_says_whether_it_owns_it(
    office: Office,
) -> None:
    header = "id,email,role,owns"
    first = ["1,anna@example.org,trainer,PHY-1", "2,boris@example.org,trainer,"]
    other = ["a,anna@example.org,trainer,", "b,boris@example.org,trainer,PHY-1"]
    for source, rows in (("1c", first), ("dorm", other), ("1c", first), ("dorm", other)):
        await office.sync(*rows, source=source, header=header)
        owned = [(await office.api.call("GET", f"/v1/ownerships?user=1c-{n}")).json["ownerships"] for n in (1, 2)]
        assert [[one["id"] for one in some] for some in owned] == [["PHY-1"], []], source


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
    make_older(file)
    assert await office.read(str(file), create_groups=True, json=True) == 0
    assert (await office.people())["1c-00042"]["name"] == "Петрова Анна"
    assert await office.group("PHY-9") == {"1c-00042"}


async def test_a_group_that_the_source_calls_otherwise_keeps_none_of_its_people(office: Office) -> None:
    await office.api.call("POST", "/v1/users", {"id": 7})
    await office.api.call("PUT", "/v1/groups/PHY-1/members/7")
    await office.sync(ANNA, BORIS)
    renamed = [one.replace("PHY-1", "PHY-1a") for one in (ANNA, BORIS)]
    assert await office.sync(*renamed, dry_run=True) == 1, "the new group is not there"
    assert await office.sync(*renamed, create_groups=True) == 0
    assert (await office.group("PHY-1"), await office.group("PHY-1a")) == ({"7"}, {"1c-00042", "1c-00043"})
    await office.api.call("DELETE", "/v1/groups/PHY-1a")
    assert await office.sync(*(one.replace("PHY-1", "PHY-2") for one in (ANNA, BORIS))) == 0


async def test_the_newest_whole_file_of_a_folder_and_a_url_are_sources(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, content = tmp_path / "exports", f"{HEADER}\n{ANNA}\n{BORIS}\n"
    folder.mkdir()
    with pytest.raises(SyncRefused, match="has no file"):
        await office.read(str(folder))
    for age, name, text in ((90, "old.csv", "id\n1\n"), (60, "people.csv", content), (30, "people.csv.part", "id\n2")):
        (folder / name).write_text(text)
        make_older(folder / name, age)
    assert await office.read(str(folder)) == 0
    assert (await office.people()).keys() == {"1c-00042", "1c-00043"}
    growing = folder / "next.csv"
    growing.write_text(HEADER)
    looks = itertools.count()

    def write_more(_: float) -> None:
        """As a program that pauses for some seconds between two parts."""
        if next(looks) % 4 == 3:
            growing.write_text(growing.read_text() + "\n00044,Vera,,,")

    monkeypatch.setattr(people_sources, "time", SimpleNamespace(time=time.time, sleep=write_more))
    for place in (folder, growing):
        with pytest.raises(SyncRefused, match="still being written"):
            await office.read(str(place))
    assert [(one["source"], one["last"]["fault"]) for one in await office.sources()] == [("1c", "unfinished")]
    async with serving({"/people": web.Response(text=content), "/halved": web.Response(text=content[:60])}) as url:
        for address, private, said in (
            (f"{url}/people?token=s3cr3t", False, "not public; --private"),
            (f"{url}/gone?token=s3cr3t", True, "answered 404"),
            (f"{url}/s3cr3t", True, "answered 404"),
            (f"{url}?s3cr3t", True, "answered 404"),
            (f"{url}/moved", True, "answered 302"),
            ("https://user:s3cr3t/x@127.0.0.1/", False, "there is no connection|no URL"),
            ("https://127.0.0.1:s3cr3t/", False, "no URL"),
            ("ldaps://cn=ada:s3cr3t@127.0.0.1", False, "--mapping"),
        ):
            with pytest.raises(CommandFailed, match=said) as refused:
                await office.read(address, private=private)
            shown = [str(refused.value), str(await office.sources())]
            shown += [one.detail async for one in check_syncs(office.api.services.core.store)]
            assert "s3cr3t" not in " ".join(shown), address
        with pytest.raises(CommandFailed, match="no user and password"):
            await office.read(url.replace("//", "//user:secret@") + "/people")
        (tmp_path / "secret").write_text("Basic abc\n")
        assert await office.read(f"{url}/people", private=True, secret_file=str(tmp_path / "secret")) == 0
        with pytest.raises(SyncRefused, match="ends within this row"):
            await office.read(f"{url}/halved", private=True)


@asynccontextmanager
async def serving(answers: dict[str, web.Response]) -> AsyncIterator[str]:
    """A web server of another system."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/moved":
            raise web.HTTPFound("/people")
        found = answers.get(request.path)
        return web.Response(status=404) if found is None else web.Response(body=found.body)

    app = web.Application()
    app.router.add_get("/{path}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def test_an_archive_of_one_roster_brings_classes_teachers_and_guardians(office: Office, tmp_path: Path) -> None:
    header = "sourcedId,status,dateLastModified,enabledUser,username,givenName,familyName,middleName,email,sms,phone"
    users = f"""{header},agentSourcedIds
s1,,,true,a,Анна,Петрова,,anna@example.org,,+79990000001,"g1,g9"
s2,,,true,b,Борис,Сергеев,,b@example.org,,,s2
s3,tobedeleted,,true,c,Вера,Ким,,,,,
t1,,,true,t,Ольга,Иванова,Павловна,o@example.org,,,
g1,,,false,g,Мария,Петрова,,m@example.org,,,
"""
    files = {
        "manifest.csv": "propertyName,value\noneroster.version,1.2\nfile.users,bulk\n",
        "users.csv": users,
        "roles.csv": "sourcedId,userSourcedId,roleType,role\n1,s1,primary,student\n2,t1,secondary,principal\n"
        "3,t1,primary,teacher\n4,g1,primary,parent\n5,s2,primary,systemAdministrator\n",
        "classes.csv": "sourcedId,status,title\nc1,,8А\nc2,,Шахматы\n",
        "enrollments.csv": "sourcedId,classSourcedId,userSourcedId,role,beginDate,endDate\n1,c1,s1,student,,\n"
        "2,c1,s2,student,2020-01-01,2021-01-01\n3,c1,t1,teacher,,\n4,c2,s2,student,2020-01-01,2099-01-01\n",
    }

    def archive(**changed: str) -> str:
        with zipfile.ZipFile(tmp_path / "roster.zip", "w") as file:
            for name, text in {**files, **changed}.items():
                file.writestr(name, text)
        make_older(tmp_path / "roster.zip")
        return str(tmp_path / "roster.zip")

    assert await office.read(archive(), source="sis") == 0
    people = await office.people()
    assert {key: (one["name"], one["role"]) for key, one in people.items()} == {
        "sis-s1": ("Петрова Анна", "student"),
        "sis-s2": ("Сергеев Борис", "staff"),
        "sis-t1": ("Иванова Ольга Павловна", "trainer"),
        "sis-g1": ("Петрова Мария", None),
    }
    assert people["sis-s1"]["contacts"] == {"sms": ["+79990000001"]}
    assert {key: one.get("guardians") for key, one in people.items() if "guardians" in one} == {"sis-s1": ["sis-g1"]}
    assert (await office.group("sis-c1"), await office.group("sis-c1-guardians")) == ({"sis-s1"}, {"sis-g1"})
    assert (await office.api.call("GET", "/v1/groups/sis-c1-guardians")).json["title"] == "8А: родители"
    owned = (await office.api.call("GET", "/v1/ownerships?user=sis-t1")).json["ownerships"]
    assert [one["id"] for one in owned] == ["sis-c1", "sis-c1-guardians"]
    await office.api.call("PATCH", "/v1/users/sis-t1", {"role": "admin"})
    moved = {
        "classes.csv": files["classes.csv"].replace("8А", "9А"),
        "enrollments.csv": files["enrollments.csv"].replace("3,c1,t1", "3,c2,t1"),
    }
    assert await office.read(archive(**moved), source="sis") == 0
    owned = (await office.api.call("GET", "/v1/ownerships?user=sis-t1")).json["ownerships"]
    assert [one["id"] for one in owned] == ["sis-c2", "sis-c2-guardians"]
    assert (await office.api.call("GET", "/v1/groups/sis-c1")).json["title"] == "9А", "a class keeps its group"
    assert (await office.people())["sis-t1"]["role"] == "admin", "no roster takes away the role of Ada"
    delta = {"manifest.csv": files["manifest.csv"].replace("bulk", "delta")}
    broken = {"users.csv": f"{users}s9,,,true,x\n,y,z,1,2,3,4,5,6,7,8,9,10,11\n"}
    for wrong, said in ((delta, "changes only"), (broken, "more cells")):
        with pytest.raises(SyncRefused, match=said):
            await office.read(archive(**wrong), source="sis")


async def test_runs_are_reported_asked_for_and_an_alarm_if_they_fail(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = office.api
    monkeypatch.setattr(sync, "_POLL_SECONDS", 0.05)
    assert (await api.call("POST", "/v1/syncs/1c/runs", {"dry_run": True})).code == "SYNC_NOT_FOUND"
    await office.sync(ANNA, BORIS)
    assert (await api.call("POST", "/v1/syncs/1c/runs", {"dry_run": True})).code == "SYNC_NOT_WATCHED"
    with pytest.raises(SyncRefused):
        await office.sync("00099,Nobody,,,")
    matters = (await api.call("GET", "/v1/overview")).json["matters"]
    assert [(one["subject"], one["reason"]) for one in matters if one["kind"] == "sync"] == [("1c", "halved")]
    (finding,) = [one async for one in check_syncs(api.services.core.store)]
    assert (finding.what, finding.is_good) == ("sync 1c", False)
    (failed,) = await office.sources()
    assert (failed["last"]["missing"], failed["last"]["of"], failed["last"]["groups"]) == (2, 2, ["PHY-1"])
    office.file.write_text("\n".join([HEADER, ANNA, BORIS.replace("Boris,", "Boris B,")]))
    make_older(office.file)
    client = HttpClient(api.url, ADMIN)
    arguments = Namespace(source="1c", place=str(office.file), **{**OPTIONS, "every": "1h"})
    watching = asyncio.create_task(sync.run(client, arguments))

    async def is_watched() -> bool:
        return bool((await office.sources())[0]["last"]["every"] == 3600)

    async def is_shown() -> bool:
        (found,) = await office.sources()
        return found["requested"] is None and found["dry_run"] is not None

    await until(is_watched)
    await api.call("PATCH", "/v1/users/1c-00043", {"name": "Changed by hand"})
    assert (await api.call("POST", "/v1/syncs/1c/runs", {"dry_run": True})).status == 204
    assert (await office.sources())[0]["requested"]["dry_run"]
    await until(is_shown)
    watching.cancel()
    (found,) = await office.sources()
    assert found["dry_run"]["changes"] == [{"id": "1c-00043", "created": False, "fields": ["name"]}]
    assert (await office.people())["1c-00043"]["name"] == "Changed by hand"
    assert not [one for one in (await api.call("GET", "/v1/overview")).json["matters"] if one["kind"] == "sync"]
    assert (await api.call("POST", "/v1/syncs/1c/runs", {"dry_run": True})).status == 204
    assert (await office.sources())[0]["requested"], "the dry run before is no answer"
    late = SourceState("1c", SyncResult("x", ended=0, every=3600))
    assert (late.is_late(7_800_000), late.is_late(7_800_001)) == (False, True)
    assert (await api.call("PUT", "/v1/syncs/1C", {"place": "x"})).code == "WRONG_VALUE"
    assert (await api.call("DELETE", "/v1/syncs/1c")).status == 204
    assert (await api.call("DELETE", "/v1/syncs/1c")).code == "SYNC_NOT_FOUND"


async def test_the_sources_of_another_tenant_are_unknown_and_a_report_is_limited(office: Office) -> None:
    await office.sync(ANNA, BORIS)
    await office.api.call("PUT", "/v1/syncs/1c", {"place": "x", "every": 3600})
    _, secret = await office.api.services.api_keys.create("admin", ["admin"], "theirs")
    theirs = office.api.as_key(secret)
    assert (await theirs.call("GET", "/v1/syncs")).json["sources"] == []
    assert (await theirs.call("POST", "/v1/syncs/1c/runs", {"dry_run": False})).code == "SYNC_NOT_FOUND"
    assert (await theirs.call("DELETE", "/v1/syncs/1c")).code == "SYNC_NOT_FOUND"
    assert (await theirs.call("PUT", "/v1/syncs/1c", {"place": "theirs"})).status == 200
    (ours,) = await office.sources()
    assert (ours["last"]["place"], ours["requested"]) == ("x", None)
    oversized: list[dict[str, object]] = [
        {"place": "x" * 513}, {"detail": "x" * 513}, {"groups": ["g"] * 5001}, {"columns": ["c"] * 501},
        {"changes": [{"id": "1", "created": True}] * 21}, {"created": 250_001}, {"every": 2**40}, {"groups": ["a\x01"]},
    ]  # fmt: skip
    for more in oversized:
        assert (await office.api.call("PUT", "/v1/syncs/1c", {"place": "x", **more})).status == 400, more
    for number in range(49):
        await theirs.call("PUT", f"/v1/syncs/s{number}", {"place": "x"})
    assert (await theirs.call("PUT", "/v1/syncs/one_more", {"place": "x"})).code == "LIMIT_REACHED"


def test_a_column_that_a_source_names_for_the_first_time_is_its_own_before_that_of_a_later_source() -> None:
    columns = {"1c": ["name"], "ad": ["email"]}
    assert [owner_of(["1c:1", "ad:2"], "email", source, columns) for source in ("1c", "ad")] == ["1c", "ad"]
    assert owner_of(["1c:1", "ad:2"], "name", "ad", columns) == "1c"


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


def test_the_lines_of_the_file_of_syncs_name_each_source_once_and_its_period(tmp_path: Path) -> None:
    file = tmp_path / "syncs.txt"
    file.write_text("# sources\n\n1c '/srv/my exports' --every 1h  # each hour\nad ldaps://dc --every=4h\n")
    assert read_sync_lines(file) == [["1c", "/srv/my exports", "--every", "1h"], ["ad", "ldaps://dc", "--every=4h"]]
    file.write_text("1c x --every 1h", "utf-8-sig")
    assert read_sync_lines(file)[0][0] == "1c", "as Windows' editor saves it"
    assert read_sync_lines(None) == ()
    for text, said in {"1c x": "needs --every", "a x --every 1h\na y --every 1h": "two lines", "a 'x": "read"}.items():
        file.write_text(text)
        with pytest.raises(SetupError, match=said):
            read_sync_lines(file)
