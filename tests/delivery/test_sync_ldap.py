"""`./ada sync` from a directory server: Debian's slapd."""

import asyncio
import subprocess
from argparse import Namespace
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ldap3
import pytest
import trustme

from cli.client.http_client import HttpClient
from cli.commands.directory import sync
from cli.commands.start.people_findings import check_sources
from cli.processes.embedded_valkey import free_port
from cli.services.people_sources import SyncRefused
from providers import ldap_directory
from tests.delivery.conftest import ADMIN, Api
from tests.delivery.test_sync import OPTIONS, Office
from tests.support.waiting import until

ADMIN_OF_SERVER, READER, PASSWORD = "cn=root,dc=uni", "cn=ada,dc=uni", "s3cret"
MAPPING = """
base: ou=people,dc=uni
filter: (objectClass=inetOrgPerson)
user: cn=ada,dc=uni
id: entryUUID
columns: {name: displayName, email: mail, contacts.sms: mobile, role: employeeType}
roles: {prof: trainer, student: student}
groups: {base: "ou=groups,dc=uni", filter: (objectClass=groupOfNames), member: member, owner: owner}
"""


class Slapd:
    """A server of its own, on free ports."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.tls_port = folder, free_port(), free_port()
        self.url, self.tls_url = f"ldap://127.0.0.1:{self.port}", f"ldaps://localhost:{self.tls_port}"
        self.ca = trustme.CA()
        (folder / "db").mkdir()
        certificate = self.ca.issue_cert("localhost")
        certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
        certificate.private_key_pem.write_to_path(folder / "key.pem")
        self.ca.cert_pem.write_to_path(folder / "ca.pem")
        schemas = "\n".join(f"include /etc/ldap/schema/{one}.schema" for one in ("core", "cosine", "inetorgperson"))
        (folder / "slapd.conf").write_text(
            f"{schemas}\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\nTLSCertificateFile {folder}/cert.pem\n"
            f"TLSCertificateKeyFile {folder}/key.pem\ndatabase mdb\nsuffix dc=uni\ndirectory {folder}/db\n"
            f"dbnosync\nrootdn {ADMIN_OF_SERVER}\nrootpw {PASSWORD}\n"
            f"limits dn.exact={READER} size.soft=3 size.hard=3 size.pr=unlimited size.prtotal=8\n"
        )

    async def __aenter__(self) -> "Slapd":
        listen = f"{self.url} {self.tls_url}"
        command = ["/usr/sbin/slapd", "-d", "0", "-h", listen, "-f", str(self.folder / "slapd.conf")]
        self.process = subprocess.Popen(command)
        await until(self.answers)
        self.admin = ldap3.Connection(ldap3.Server(self.url), ADMIN_OF_SERVER, PASSWORD, auto_bind=True)
        self.add("dc=uni", "organization dcObject", o="uni", dc="uni")
        self.add(READER, "organizationalRole simpleSecurityObject", userPassword=PASSWORD)
        for unit in ("people", "groups"):
            self.add(f"ou={unit},dc=uni", "organizationalUnit")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.admin.unbind()
        self.process.terminate()
        self.process.wait()

    async def answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    def add(self, name: str, classes: str, **attributes: Any) -> None:
        assert self.admin.add(name, classes.split(), attributes), self.admin.result

    def person(self, uid: str, name: str, **more: str) -> str:
        where = f"uid={uid},ou=people,dc=uni"
        self.add(where, "inetOrgPerson", sn=name, cn=name, displayName=name, mail=f"{uid}@example.org", **more)
        return where


@pytest.fixture
async def slapd(tmp_path: Path) -> AsyncIterator[Slapd]:
    async with Slapd(tmp_path) as server:
        yield server


async def test_people_groups_and_owners_come_from_a_directory_server_and_half_an_answer_changes_nothing(
    api: Api, slapd: Slapd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, mapping, secret = Office(api, tmp_path), tmp_path / "people.yaml", tmp_path / "password"
    mapping.write_text(MAPPING)
    secret.write_text(f"{PASSWORD}\n")
    monkeypatch.setattr(ldap_directory, "_PAGE", 2)

    async def read(url: str = slapd.url, **more: Any) -> int:
        given = {**OPTIONS, "mapping": str(mapping), "secret_file": str(secret), **more}
        return await sync.run(HttpClient(api.url, ADMIN), Namespace(source="ad", place=url, **given))

    anna = slapd.person("anna", "Анна Петрова", mobile="+79990000001", employeeType="student")
    ivan = slapd.person("ivan", "Иван Ким", employeeType="prof")
    for number in range(5):
        slapd.person(f"p{number}", f"P {number}")
    slapd.add("cn=ИВТ-101,ou=groups,dc=uni", "groupOfNames", member=[anna.upper()], owner=[ivan], description="ИВТ-101")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert await read(slapd.tls_url, dry_run=True) == 0, "its groups are not there yet"
    assert await office.people() == {}
    assert await read(slapd.tls_url) == 0
    people = {one["name"]: one for one in (await office.people()).values()}
    assert len(people) == 7, "four pages"
    assert (people["Анна Петрова"]["role"], people["Анна Петрова"]["contacts"]) == (
        "student",
        {"sms": ["+79990000001"]},
    )
    assert await office.group("ad-ИВТ-101") == {people["Анна Петрова"]["id"]}
    owned = (await api.call("GET", f"/v1/ownerships?user={people['Иван Ким']['id']}")).json["ownerships"]
    assert [one["id"] for one in owned] == ["ad-ИВТ-101"]
    slapd.admin.modify_dn(anna, "uid=anna.smirnova")
    slapd.admin.modify(
        "uid=anna.smirnova,ou=people,dc=uni", {"displayName": [(ldap3.MODIFY_REPLACE, ["Анна Смирнова"])]}
    )
    slapd.admin.delete("uid=p0,ou=people,dc=uni")
    assert await read() == 0
    names = {one["name"]: one["blocked"] for one in (await office.people()).values()}
    assert (names["Анна Смирнова"], names["P 0"], len(names)) == (False, True, 7), "who is renamed stays the person"
    before = await office.people()
    for number in range(10, 14):
        slapd.person(f"p{number}", f"P {number}")
    wrong = [
        ({}, "izeLimit"),
        ({"url": slapd.tls_url.replace("localhost", "127.0.0.1")}, "certificate|hostname"),
        ({"url": "ldap://127.0.0.1:1"}, "LDAP"),
        ({"url": f"{slapd.url}/dc=uni?x"}, "the address is"),
    ]
    for given, said in wrong:
        with pytest.raises(SyncRefused, match=said) as refused:
            await read(**given)
        assert PASSWORD not in str(refused.value)
    secret.write_text("another")
    with pytest.raises(SyncRefused, match="refuses its password"):
        await read()
    secret.write_text(PASSWORD)
    for old, new, said in (
        ("ou=people,dc=uni", "ou=staff,dc=uni", "as base"),
        ("filter: (objectClass=inetOrgPerson)", "filter: (objectClass=", "filter"),
    ):
        mapping.write_text(MAPPING.replace(old, new))
        with pytest.raises(SyncRefused, match=said):
            await read()
    mapping.write_text(MAPPING.replace("prof: trainer", "prof: admin"))
    with pytest.raises(SyncRefused, match="role"):
        await read()
    mapping.write_text(MAPPING.replace("{name:", "{blocked: mail, name:"))
    with pytest.raises(SyncRefused, match="blocked"):
        await read()
    now = await office.people()
    assert now == before


async def test_a_part_at_another_server_and_lost_groups_change_nothing(api: Api, slapd: Slapd, tmp_path: Path) -> None:
    """A referral, a filter that finds no group any more, and an attribute that the reader may no longer read."""
    office, mapping, secret = Office(api, tmp_path), tmp_path / "people.yaml", tmp_path / "password"
    secret.write_text(PASSWORD)

    async def read(text: str) -> int:
        mapping.write_text(text)
        given = {**OPTIONS, "mapping": str(mapping), "secret_file": str(secret)}
        return await sync.run(HttpClient(api.url, ADMIN), Namespace(source="ad", place=slapd.url, **given))

    members = [slapd.person(f"p{number}", f"P {number}", employeeType="student") for number in range(7)]
    slapd.add("cn=all,ou=groups,dc=uni", "groupOfNames", member=members)
    assert await read(MAPPING) == 0
    before, group = await office.people(), await office.group("ad-all")
    assert group == before.keys()
    for right, wrong, column in (
        ("objectClass=groupOfNames", "objectClass=groupOfURLs", "groups"),
        ("email: mail", "email: title", "email"),
        ("role: employeeType", "role: l", "role"),
    ):
        with pytest.raises(SyncRefused, match=f"7 of 7 people would lose all of '{column}'"):
            await read(MAPPING.replace(right, wrong))
    slapd.admin.modify_dn("cn=all,ou=groups,dc=uni", "cn=everybody")
    assert await read(MAPPING) == 0
    assert (await office.group("ad-all"), await office.group("ad-everybody")) == (set(), group), "it is renamed"
    slapd.admin.modify_dn("cn=everybody,ou=groups,dc=uni", "cn=all")
    slapd.admin.delete(members[0])
    slapd.person("p0", "P 0", employeeType="student")
    slapd.admin.modify("cn=all,ou=groups,dc=uni", {"member": [(ldap3.MODIFY_REPLACE, members)]})
    assert await read(MAPPING) == 0
    assert len(await office.people()) == 7, "who is deleted and added again has another entryUUID"
    before, group = await office.people(), await office.group("ad-all")
    assert group == before.keys()
    where = "ou=moved,ou=people,dc=uni"
    slapd.add(where, "referral extensibleObject", ou="moved", ref=f"ldap://another.example.org/{where}")
    with pytest.raises(SyncRefused, match="is at another server, ldap://another"):
        await read(MAPPING)
    assert (await office.people(), await office.group("ad-all")) == (before, group)
    assert await read(f"{MAPPING}ignore_references: true\n") == 0
    with pytest.raises(SyncRefused, match="referral"):
        await read(MAPPING.replace("ou=people,dc=uni", f"ou=x,{where}", 1))


def test_the_members_of_a_large_group_that_active_directory_gives_in_parts_are_read_on() -> None:
    """slapd gives no parts; the answers are as MS-ADTS 3.1.1.3.1.3.3 describes them."""
    parts = {"member;range=2-*": ("member;range=2-3", [b"c", b"d"]), "member;range=4-*": ("member;range=4-*", [b"e"])}

    def search(name: str, wanted: str, scope: str, attributes: list[str]) -> None:
        attribute, values = parts[attributes[0]]
        connection.response = [{"type": "searchResEntry", "raw_attributes": {"member": [], attribute: values}}]

    connection = SimpleNamespace(search=search, result={"result": 0, "description": "success"}, response=[])
    entry = {"dn": "cn=all", "raw_attributes": {"member": [], "member;range=0-1": [b"a", b"b"], "cn": [b"all"]}}
    whole: Any = ldap_directory.whole_values
    assert whole(connection, entry) == {"member": ["a", "b", "c", "d", "e"], "cn": ["all"]}


async def test_the_doctor_reads_each_source_of_people_and_says_which_it_cannot(
    slapd: Slapd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        slapd.person(f"p{number}", f"P {number}")
    ldap = f"{slapd.tls_url} --every 4h --mapping people.yaml --secret-file"
    files = {"people.yaml": MAPPING, "password": PASSWORD, "old": "old", "people.csv": "id;name\n1;Anna\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "syncs").write_text(
        f"ad {ldap} password\nlate {ldap} old\n1c people.csv --every 1h\ngone gone.csv --every 1h\n"
        "typo people.csv --every 1h --privat\n"
    )
    found = [one async for one in check_sources(tmp_path / "syncs", sign_in=True)]
    assert [(one.what, one.is_good) for one in found] == [
        ("source ad", True),
        ("source late", False),
        ("source 1c", True),
        ("source gone", False),
        ("source typo", False),
    ]
    details = [one.detail for one in found]
    assert (details[0], details[2]) == (f"{slapd.tls_url} has 2 people", "people.csv has 1 person")
    assert "password" in details[1]
    assert "gone.csv" in details[3]
    assert "--privat" in details[4]
    untried = [one async for one in check_sources(tmp_path / "syncs", sign_in=False)]
    assert {one.detail for one in untried} == {"is named in ADA_SYNCS (use --sign-in to read it)"}
