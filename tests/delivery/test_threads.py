"""Threads over HTTP: who reads which inbox, answers, reasons."""

import asyncio
import io
import json
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest

from cli.client.http_client import HttpClient
from cli.command import CommandFailed
from cli.commands.messages.deliveries import empty_office
from cli.commands.messages.threads import inbox, reply
from core.model.content import Feature
from core.model.people import Group
from core.redis.keys import KEYS
from core.threads.limits import MOST_IN_THREAD
from core.threads.metadata import without_metadata
from core.threads.threads import Added, Correspondent, Inbox, ReplyRoute, ThreadMessage
from tests.core.threads.test_metadata import photograph
from tests.delivery.conftest import Api, Couriers
from tests.delivery.test_people_signed_in import as_person, people
from tests.support.servers import several_shards
from tests.support.stack import FakeCourier
from tests.support.waiting import until

__all__ = ["people", "several_shards"]

P1, OFFICE = Inbox("user", "1"), Inbox("office", "mine")


async def written(api: Api, text: str = "Hello", inbox: Inbox = P1, event: str = "e1") -> Added:
    """What the student P4 has written to an inbox, by SMS."""
    message = ThreadMessage(0, "person", 0, 4, text, "sms")
    way = ReplyRoute("sms", "+79991112204")
    return await api.services.core.threads.add_of_person(
        "default", inbox, Correspondent(4, "P4"), way, "", event, message
    )


@pytest.mark.usefixtures("people")
async def test_a_person_reads_and_answers_its_own_inbox(api: Api, courier: Couriers) -> None:
    sms, added, browser = await courier("sms"), await written(api), await as_person(api, 1)
    page = (await browser.call("GET", "/v1/threads?unread=true")).json
    assert page["inboxes"] == [{"id": "user:1", "title": "P1", "unread": 1}]
    (thread,) = page["threads"]
    assert (thread["id"], thread["person"], thread["unread"]) == (added.thread, {"id": 4, "name": "P4"}, 1)
    assert (thread["newest"]["text"], thread["channel"]) == ("Hello", "sms")
    where = f"/v1/threads/{added.thread}"
    assert (await browser.call("POST", f"{where}:read")).json == {"unread": 0}
    answered = await browser.call("POST", f"{where}/messages", {"text": "Good day"})
    assert (answered.status, answered.json["side"], answered.json["by"]) == (201, "staff", 1)
    await until(lambda: sms.attempted)
    assert [(one.address, one.text) for one in sms.attempted] == [("+79991112204", "P1 отвечает:\nGood day")]
    details = (await browser.call("GET", where)).json
    assert [one["text"] for one in details["messages"]] == ["Good day", "Hello"]
    assert (await browser.call("GET", "/v1/threads?unread=true")).json["threads"] == []
    newest = (await browser.call("GET", f"{where}?limit=1")).json
    older = (await browser.call("GET", f"{where}?limit=1&cursor={newest['next']}")).json
    assert ([one["text"] for one in older["messages"]], older["next"]) == (["Hello"], None)


@pytest.mark.usefixtures("people")
async def test_an_answer_with_an_idempotency_key_goes_out_once(api: Api, courier: Couriers) -> None:
    sms, added = await courier("sms"), await written(api)
    where, headers = f"/v1/threads/{added.thread}", {"Ada-Reason": "helpdesk", "Idempotency-Key": "k1"}
    first = await api.call("POST", f"{where}/messages", {"text": "Once"}, headers=headers)
    again = await api.call("POST", f"{where}/messages", {"text": "Once"}, headers=headers)
    assert (first.status, first.json["number"]) == (again.status, again.json["number"]) == (201, 2)
    other = await api.call("POST", f"{where}/messages", {"text": "Other words"}, headers=headers)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    await until(lambda: sms.attempted)
    assert [one.text for one in sms.attempted] == ["P1 отвечает:\nOnce"]


@pytest.mark.usefixtures("people")
async def test_repeats_of_an_answer_whose_response_was_lost_are_one_of_its_ten_messages(api: Api) -> None:
    """A process that dies before it has stored the response has forgotten the key, and not the answer."""
    added = await written(api)
    where, headers = f"/v1/threads/{added.thread}/messages", {"Ada-Reason": "helpdesk", "Idempotency-Key": "k1"}
    for _ in range(MOST_IN_THREAD + 2):
        response = await api.call("POST", where, {"text": "Once"}, headers=headers)
        assert (response.status, response.json["number"]) == (201, 2)
        await api.services.idempotency.forget("default", "k1")


@pytest.mark.usefixtures("people")
async def test_an_answer_has_files_that_its_readers_may_save(api: Api, courier: Couriers) -> None:
    sms = await courier("sms", kind=partial(FakeCourier, shows=frozenset({Feature.PHOTO})))
    added, browser, ids = await written(api), await as_person(api, 1), []
    where = f"/v1/threads/{added.thread}"
    for name, content in (("me.jpg", photograph()), ("79991234567.pdf", b"%PDF"), ("raw.tif", b"II*\0raw")):
        ids.append((await browser.call("POST", f"/v1/files?name={name}", content)).json["id"])
    refused = await browser.call("POST", f"{where}/messages", {"text": "Look", "files": ids[2:]})
    assert (refused.status, refused.code) == (400, "FILE_NOT_PASSED_ON")
    refused = await browser.call("POST", f"{where}/messages", {"files": ids[:2]})
    assert (refused.status, refused.code) == (409, "ADDRESS_IN_TEXT")
    assert (await browser.call("POST", f"{where}/messages", {"files": []})).code == "TEXT_EMPTY"
    answered = (await browser.call("POST", f"{where}/messages", {"files": ids[:2], "with_addresses": True})).json
    (file,) = answered["attachments"]
    assert (file["name"], file["type"], answered["files"]) == ("photo.jpg", "photo", 1)
    await until(lambda: sms.attempted)
    assert sms.attempted[0].text == "P1 отвечает:\n(Файлы не переданы: 1.)"
    saved = await browser.call("GET", f"{where}/messages/2/files/{file['id']}")
    assert saved.body == without_metadata(photograph())
    for place in (f"1/files/{file['id']}", f"2/files/{ids[0]}", f"x/files/{ids[0]}"):
        assert (await browser.call("GET", f"{where}/messages/{place}")).code == "FILE_NOT_FOUND"


@pytest.mark.usefixtures("people")
async def test_an_answer_has_ten_files_of_20_megabytes_each_at_most(api: Api, courier: Couriers) -> None:
    sms, browser = (
        await courier("sms", kind=partial(FakeCourier, shows=frozenset({Feature.DOCUMENT}))),
        await as_person(api, 1),
    )
    where, ids = f"/v1/threads/{(await written(api)).thread}/messages", []
    for size in (20 * 2**20, 20 * 2**20 + 1):
        uploaded = await api.services.uploads.store("default", "film.txt", io.BytesIO(b"x" * size))
        ids.append(uploaded.id)
    eleven = await browser.call("POST", where, {"files": ids[:1] * 11})
    assert (eleven.status, eleven.code) == (400, "TOO_MANY_ATTACHMENTS")
    large = await browser.call("POST", where, {"files": ids})
    assert (large.status, large.code) == (400, "FILE_NOT_PASSED_ON")
    assert not sms.attempted
    sent = (await browser.call("POST", where, {"files": ids[:1]})).json
    assert [one["bytes"] for one in sent["attachments"]] == [20 * 2**20]


@pytest.mark.usefixtures("people")
async def test_an_answer_with_an_address_is_sent_only_if_the_author_wants_it(api: Api, courier: Couriers) -> None:
    sms, added, browser = await courier("sms"), await written(api), await as_person(api, 1)
    where, answer = f"/v1/threads/{added.thread}/messages", {"text": "Call +7 912 345-67-89"}
    refused = await browser.call("POST", where, answer)
    assert (refused.status, refused.code) == (409, "ADDRESS_IN_TEXT")
    assert (await browser.call("POST", where, {**answer, "with_addresses": True})).status == 201
    await until(lambda: sms.attempted)
    assert [one.text for one in sms.attempted] == ["P1 отвечает:\nCall +7 912 345-67-89"]


@pytest.mark.usefixtures("people")
async def test_an_answer_after_that_of_a_colleague_is_sent_only_if_its_author_wants_it(
    api: Api, courier: Couriers
) -> None:
    await courier("sms")
    added = await written(api, inbox=Inbox("office", "dean"))
    where, why = f"/v1/threads/{added.thread}/messages", {"Ada-Reason": "on duty"}
    assert (await api.call("POST", where, {"text": "Yes"}, headers=why)).status == 201
    assert (await api.call("POST", where, {"text": "At ten"}, headers=why)).status == 201
    await api.services.core.directory.groups.create("default", Group("dean"), [1])
    colleague = await as_person(api, 1)
    refused = await colleague.call("POST", where, {"text": "No"})
    assert (refused.status, refused.code) == (409, "ANSWERED_ALREADY")
    assert (await colleague.call("POST", where, {"text": "No", "again": True})).status == 201


@pytest.mark.usefixtures("people")
async def test_the_readers_of_an_office_see_who_is_answering_and_an_answer_meanwhile_is_refused(
    api: Api, courier: Couriers
) -> None:
    await courier("sms")
    await api.services.core.directory.groups.create("default", Group("dean"), [1, 3])
    added = await written(api, inbox=Inbox("office", "dean"))
    where, first, second = f"/v1/threads/{added.thread}", await as_person(api, 1), await as_person(api, 3)
    assert (await first.call("POST", f"{where}:answering", {})).json == {"colleague": None}
    seen = {"id": "1", "name": "P1"}
    assert (await second.call("POST", f"{where}:answering", {})).json == {"colleague": seen}
    (listed,) = (await second.call("GET", "/v1/threads?inbox=office:dean")).json["threads"]
    assert listed["answering"] == (await second.call("GET", where)).json["thread"]["answering"] == seen
    refused = await second.call("POST", f"{where}/messages", {"text": "No"})
    assert (refused.status, refused.code) == (409, "ANSWERING_NOW")
    await first.call("POST", f"{where}:answering", {"ended": True})
    assert (await second.call("GET", where)).json["thread"]["answering"] is None
    both = await asyncio.gather(*(one.call("POST", f"{where}/messages", {"text": "Yes"}) for one in (first, second)))
    assert sorted(one.status for one in both) == [201, 409], "of two at once one is told"


@pytest.mark.usefixtures("people")
async def test_nobody_else_reads_an_inbox_without_a_right_and_a_reason(api: Api) -> None:
    added = await written(api)
    where = f"/v1/threads/{added.thread}"
    other, administrator = await as_person(api, 2), await as_person(api, 3)
    for method, path, body in (
        ("GET", where, None),
        ("POST", f"{where}/messages", {"text": "a"}),
        ("POST", f"{where}:read", None),
    ):
        refused = await other.call(method, path, body)
        assert (refused.status, refused.code) == (404, "THREAD_NOT_FOUND")
    assert (await other.call("GET", "/v1/threads?inbox=user:1")).code == "INBOX_NOT_YOURS"
    assert (await administrator.call("GET", "/v1/threads?inbox=user:1")).code == "REASON_MISSING"
    assert (await api.call("GET", "/v1/threads?inbox=user:1")).code == "REASON_MISSING"
    _, secret = await api.services.api_keys.create("program", ["send", "read"])
    program = api.as_key(secret)
    assert (await program.call("GET", "/v1/threads?inbox=user:1", headers={"Ada-Reason": "I like to"})).status == 403
    read = await api.call("GET", "/v1/threads?inbox=user:1", headers={"Ada-Reason": "a complaint"})
    assert [one["id"] for one in read.json["threads"]] == [added.thread]
    logged = (await api.call("GET", "/v1/actions")).json["actions"][0]
    assert (logged["what"], logged["why"]) == ("read user:1", "a complaint")


@pytest.mark.usefixtures("people")
async def test_an_office_is_an_inbox_of_its_members_except_students(api: Api) -> None:
    await api.call("PUT", "/v1/groups/mine/members/2")
    added = await written(api, inbox=OFFICE)
    staff, student = await as_person(api, 2), await as_person(api, 4)
    page = (await staff.call("GET", "/v1/threads?inbox=office:mine")).json
    assert [one["id"] for one in page["inboxes"]] == ["user:2", "office:mine"]
    assert [one["id"] for one in page["threads"]] == [added.thread]
    assert (await student.call("GET", "/v1/threads?inbox=office:mine")).code == "INBOX_NOT_YOURS"
    assert (await student.call("GET", f"/v1/threads/{added.thread}")).code == "THREAD_NOT_FOUND"


@pytest.mark.usefixtures("people")
async def test_who_names_an_office_without_members_hears_that_no_person_reads_it(api: Api, courier: Couriers) -> None:
    await courier("sms")
    await api.services.core.directory.groups.create("default", Group("helpdesk"))
    body = {"text": "Hello", "sender": {"id": 1}, "recipients": [{"id": 4}], "channels": ["sms"]}
    for path, status in (("/v1/deliveries", 202), ("/v1/deliveries/preview", 200)):
        said = await api.call("POST", path, {**body, "replies": "helpdesk"})
        assert (said.status, said.json["empty_office"]) == (status, True)
        assert empty_office(said.json) == "the office has no members, so replies are read only over HTTP"
        read = (await api.call("POST", path, {**body, "replies": "sender"})).json
        assert {"recipients", "people"} & read.keys()
        assert "empty_office" not in read
        assert not empty_office(read)
    for office, named in (("helpdesk", True), ("sender", None)):
        series = {"message": {**body, "replies": office}, "when": "every Monday 8:00"}
        made = (await api.call("POST", "/v1/series", series)).json
        assert made.get("empty_office") is named
        changed = await api.call("PATCH", f"/v1/series/{made['id']}", {"message": series["message"]})
        assert changed.json.get("empty_office") is named


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/threads", "INBOX_MISSING"),
        ("/v1/threads?inbox=mine", "INBOX_MALFORMED"),
        ("/v1/threads?inbox=user:1&cursor=1-2", "CURSOR_MALFORMED"),
        ("/v1/threads/nonsense", "THREAD_NOT_FOUND"),
        ("/v1/threads/99999.00000000000000000000", "THREAD_NOT_FOUND"),
        ("/v1/threads/0.00000000000000000000?cursor=0", "CURSOR_MALFORMED"),
    ],
)
async def test_what_is_no_inbox_and_no_thread_is_refused(api: Api, path: str, code: str) -> None:
    refused = await api.call("GET", path, headers={"Ada-Reason": "a test"})
    codes = {refused.code, *(error["code"] for error in (refused.json or {}).get("errors", ()))}
    assert code in codes, refused


@pytest.mark.usefixtures("people")
async def test_threads_go_with_their_person(api: Api) -> None:
    added = await written(api)
    assert (await api.call("DELETE", "/v1/users/4")).status == 204
    assert not [name for name in await api.keys() if name.startswith("threads:") and ":closed:" not in name]
    assert (await api.call("GET", f"/v1/threads/{added.thread}", headers={"Ada-Reason": "a"})).status == 404


@pytest.mark.usefixtures("people")
async def test_the_inbox_of_a_deleted_sender_goes_with_it(api: Api) -> None:
    await written(api)
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    kept = [name for name in await api.keys() if name.startswith("threads:")]
    assert [name for name in kept if ":of:" not in name and ":closed:" not in name] == []


@pytest.mark.usefixtures("people")
async def test_a_reader_mutes_hides_and_reports_a_thread(api: Api) -> None:
    added, browser = await written(api), await as_person(api, 1)
    where = f"/v1/threads/{added.thread}"
    for name, body in (("mute", {"muted": True}), ("hide", None), ("report", {"why": "rude words"})):
        assert (await (await as_person(api, 2)).call("POST", f"{where}:{name}", body)).code == "THREAD_NOT_FOUND"
    assert (await browser.call("POST", f"{where}:mute", {"muted": True})).status == 204
    (thread,) = (await browser.call("GET", "/v1/threads")).json["threads"]
    assert (thread["muted"], thread["unread"]) == (True, 0)
    assert (await browser.call("POST", f"{where}:hide")).status == 204
    assert (await browser.call("GET", "/v1/threads")).json["threads"] == []
    assert (await browser.call("GET", where)).json["thread"]["muted"] is True
    assert (await browser.call("POST", f"{where}:report", {"why": "rude words"})).status == 204
    logged = (await api.call("GET", "/v1/actions")).json["actions"][0]
    assert (logged["who"], logged["what"]) == ("person:1", f"report {added.thread}: rude words")


@pytest.mark.usefixtures("people")
async def test_the_verbs_reply_and_inbox_send_and_name_files(
    api: Api, courier: Couriers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await courier("sms", kind=partial(FakeCourier, shows=frozenset({Feature.DOCUMENT})))
    added, file, client = await written(api), tmp_path / "Marks.pdf", HttpClient(api.url, api.secret)
    file.write_bytes(b"%PDF")
    common = {"reason": "helpdesk", "json": False}
    given = Namespace(
        thread=added.thread, text=None, file=[str(file)], with_addresses=False, again=False, repeat_key="k1", **common
    )
    assert await reply(client, given) == 0
    assert await inbox(client, Namespace(what=added.thread, unread=False, search="", **common)) == 0
    sent, *shown, last = capsys.readouterr().out.splitlines()
    assert sent.endswith("  sent")
    assert [shown[0], shown[2]] == ["P4 and user:1, in sms", "  Hello"]
    assert last == "  [Marks.pdf]"


@pytest.mark.usefixtures("people")
async def test_a_reader_finds_a_thread_by_the_name_or_the_words_and_pages_of_one_moment_are_whole(api: Api) -> None:
    core, browser = api.services.core, await as_person(api, 1)
    for number in range(9):
        message = ThreadMessage(0, "person", 0, f"s{number}", f"Lab report {number}, ПОЧТОЙ", "sms")
        person, way = Correspondent(f"s{number}", f"Мария {number}"), ReplyRoute("sms", f"+7999111220{number}")
        await core.threads.add_of_person("default", P1, person, way, "", f"e{number}", message)
    key = KEYS["inbox"].at(core.store.shard_of(f"default:{P1}"), "default", str(P1))
    members = await core.store.command("ZRANGE", key, 0, -1)
    await core.store.command("ZADD", key, *(one for member in members for one in (1_700_000_000_000, member)))

    async def all_of(**query: str) -> list[str]:
        texts: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await browser.call("GET", f"/v1/threads?{urlencode({**query, **cursor, 'limit': 2})}")).json
            assert len(page["threads"]) <= 2
            texts += [one["newest"]["text"][:12] for one in page["threads"]]
            if page["next"] is None:
                return sorted(texts)
            cursor = {"cursor": page["next"]}

    every = [f"Lab report {number}" for number in range(9)]
    assert await all_of() == every
    assert await all_of(q="мария") == await all_of(q="почтой") == every
    assert await all_of(q="РИЯ 3") == await all_of(q="report 3") == ["Lab report 3"]
    assert await all_of(q="Пётр") == []
    answered = members[0]
    thread = await core.threads.find("default", answered)
    await core.threads.mark_read(thread, thread.messages)
    assert len(await all_of(q="мария", unread="true")) == 8


def is_past(ms: int) -> bool:
    return time.time() * 1000 >= ms + 1


@pytest.mark.usefixtures("people")
async def test_rows_of_an_inbox_fit_a_terminal_and_its_pages_are_whole(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    long_name = "Константинопольская Ольга-Александра Владимировна"
    for number in range(3):
        text = f"{number} Я приду, если\nпогода позволит, " + "и ещё слово " * 30
        message = ThreadMessage(0, "person", 0, f"s{number}", text, "telegram-bot")
        person, way = Correspondent(f"s{number}", long_name), ReplyRoute("telegram-bot", f"10007{number}")
        added = await api.services.core.threads.add_of_person("default", P1, person, way, "", f"e{number}", message)
        await until(partial(is_past, added.message.at))  # threads of one millisecond have no order
    wanted = {"name": "mine", "scopes": ["read"], "days": 1}
    own = (await (await as_person(api, 1)).call("POST", "/v1/me/keys", wanted)).json["secret"]
    operator, reader = HttpClient(api.url, api.secret), HttpClient(api.url, own)

    async def printed(client: HttpClient, what: str = "", **options: object) -> list[str]:
        defaults = {"what": what, "reason": "", "unread": False, "search": "", "json": False}
        assert await inbox(client, Namespace(**{**defaults, **options})) == 0
        return capsys.readouterr().out.splitlines()

    with pytest.raises(CommandFailed, match=r"of no person.*\n.*ada inbox ID --reason WHY"):
        await printed(operator)
    with pytest.raises(CommandFailed, match="REASON_MISSING"):
        await printed(operator, "1")
    lines = await printed(reader)
    assert lines == await printed(operator, "1", reason="why")
    assert len(lines) == 6
    thread = await printed(reader, lines[0].split()[0])
    assert max(map(len, [*lines, *thread])) <= 80
    assert lines[1].startswith("  Константинопольская Ольга-Але…: 2 Я приду, если погода")
    assert lines[0].split()[2].endswith("+00:00")
    assert thread[1].startswith(lines[0].split()[1])
    assert [json.loads(one)["person"]["id"] for one in await printed(reader, json=True)] == ["s2", "s1", "s0"]
    assert await printed(reader, search="1 я приду") == lines[2:4]
    with pytest.raises(CommandFailed, match="--search choose threads"):
        await printed(reader, lines[0].split()[0], search="x")
