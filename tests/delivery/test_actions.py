"""The action log: what is in it, and who reads it."""

import time

import pytest

from core.processes.register import ProcessRecord, ProcessRegister, ProcessState
from core.queue import NewTask
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_authentication import a_key
from tests.delivery.test_sessions import signed_in_with_key
from tests.support.servers import several_shards

__all__ = ["several_shards"]


async def test_what_is_changed_for_others_is_logged_once_with_who_what_how_many_and_why(api: Api) -> None:
    browser = await signed_in_with_key(api, "manage")
    browser.headers |= {"Ada-Reason": "%D0%BE%D1%88%D0%B8%D0%B1%D0%BA%D0%B0", "Idempotency-Key": "k"}
    for _ in range(2):
        assert (await browser.call("POST", "/v1/groups", {"id": "A-1"})).status == 201
    assert (await browser.call("POST", "/v1/supergroups", {"id": "A-1"})).status != 201, "a refusal is no change"
    for _ in range(2):
        await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))
    await api.call("POST", "/v1/cancellations", {"sender": 42}, headers={"User-Agent": "ada-cli"})
    cancelled, made = (await api.call("GET", "/v1/actions")).json["actions"]
    assert (made["name"], made["via"], made["what"]) == ("office", "console", "POST /v1/groups")
    assert (made["target"], made["count"], made["why"]) == ("/v1/groups", 1, "ошибка")
    assert (cancelled["via"], cancelled["what"], cancelled["count"]) == ("cli", "POST /v1/cancellations", 2)


async def test_why_a_tube_was_paused_and_what_was_asked_of_which_process_are_in_the_log(api: Api) -> None:
    store, now = api.services.core.store, int(time.time() * 1000)
    runs = ProcessRecord(
        id="some",
        kind="courier",
        name="vk",
        host="a machine",
        pid=7,
        version="0.1.0",
        started=now,
        beat=now,
        since=now,
        state=ProcessState.RUNNING,
    )
    await ProcessRegister(store).write(runs)
    await api.call("POST", "/v1/queue/tubes/sms:pause", {"reason": "we check\u202e it"})
    await api.call("POST", "/v1/processes/some/requests", {"request": "quiet"})
    asked, paused = (await api.call("GET", "/v1/actions")).json["actions"]
    assert (paused["what"], paused["why"]) == ("POST /v1/queue/tubes/{tube}:pause", "we check it")
    assert (asked["target"], asked["filter"]) == ("/v1/processes/some/requests", "courier vk: quiet")


async def test_the_log_is_filtered_paged_and_exported_and_that_of_another_tenant_is_not_seen(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.admission.actions._PAGE", 3)
    monkeypatch.setattr("core.admission.actions._MOST_READ", 3)
    for number in range(3):
        await api.call("POST", "/v1/groups", {"id": f"A-{number}"})
    await api.call("DELETE", "/v1/groups/A-0")
    first = (await api.call("GET", "/v1/actions?limit=2&what=POST")).json
    second = (await api.call("GET", f"/v1/actions?limit=2&what=POST&cursor={first['next']}")).json
    assert [len(one["actions"]) for one in (first, second)] == [2, 1]
    assert not {one["id"] for one in first["actions"]} & {one["id"] for one in second["actions"]}
    assert (await api.call("GET", "/v1/actions?since=2030-01-01T00:00:00Z")).json["actions"] == []
    assert (await api.call("GET", "/v1/actions?cursor=x")).code in ("CURSOR_MALFORMED", "TOO_SHORT")
    lines = (await api.call("GET", "/v1/actions.csv")).body.decode().splitlines()
    assert lines[0] == "at,who,name,via,what,target,count,why,filter"
    assert (len(lines), "DELETE /v1/groups/{id},/v1/groups/A-0,1,," in lines[1]) == (5, True)
    theirs = await a_key(api, "admin", tenant="theirs")
    assert (await theirs.call("GET", "/v1/actions")).json == {"actions": [], "next": None}


async def test_the_steps_of_an_action_are_one_entry_with_their_count_filter_reason_and_way(api: Api) -> None:
    queue, now = api.services.core.queue, int(time.time() * 1000) + 60_000
    await queue.put_many("sms", [NewTask("", kind="lost")] * 1200)
    browser, other = await signed_in_with_key(api, "admin"), await signed_in_with_key(api, "admin")
    browser.headers |= {"Ada-Reason": "spam", "Ada-Action": "the-first-action"}
    other.headers |= {"Ada-Action": "the-first-action"}
    more: dict[str, str] = {}
    for expected in (1150, 650, 150):
        body = {"kind_prefix": "lost", "tube": "sms", "before": now, "expected": expected, **more}
        more = {"cursor": (await browser.call("POST", "/v1/queue/tasks:cancel", body)).json["next"]}
        if expected == 1150:
            await other.call("POST", "/v1/groups", {"id": "between"})
    assert more == {"cursor": None}
    cancelled, between = (await api.call("GET", "/v1/actions")).json["actions"]
    assert (cancelled["count"], cancelled["filter"]) == (1150, "tube=sms kind_prefix=lost")
    assert (cancelled["why"], cancelled["via"]) == ("spam", "console")
    assert (between["what"], between["count"], between["filter"]) == ("POST /v1/groups", 1, "")
    await other.call("POST", "/v1/groups", {"id": "later"})
    await browser.call("POST", "/v1/groups", {"id": "own"})
    made = (await api.call("GET", "/v1/actions?what=POST /v1/groups")).json["actions"]
    assert [one["count"] for one in made] == [1, 2], "another caller has an entry of its own under the same name"


async def test_every_count_of_a_response_is_the_count_of_the_entry(api: Api) -> None:
    csv = "id,name\n1,Anna\n2,Boris\n3,Vera\n"
    await api.call("POST", "/v1/import/columns?kind=users", csv.encode(), headers={"Content-Type": "text/csv"})
    await api.call("POST", "/v1/import?kind=users", csv.encode(), headers={"Content-Type": "text/csv"})
    queue = api.services.core.queue
    await queue.bury(await queue.put("sms", NewTask("", kind="a")))
    letters = {"tube": "sms", "kind": "a", "error": "", "before": int(time.time() * 1000) + 60_000, "expected": 1}
    await api.call("POST", "/v1/queue/dead-letters:cancel", letters)
    letter, imported = (await api.call("GET", "/v1/actions")).json["actions"]
    assert (imported["what"], imported["count"]) == ("POST /v1/import", 3)
    assert (letter["count"], letter["filter"]) == (1, "tube=sms kind=a")
