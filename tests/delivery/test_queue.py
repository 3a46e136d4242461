"""The queue over HTTP: search, list and cancel tasks."""

import asyncio
import time

import pytest

from cli.main import main
from core.queue import NewTask, Queue, Tube, Tubes
from tests.delivery.conftest import Api, ApiResponse
from tests.support.waiting import until

TASKS = "/v1/queue/tasks"
ALL_MARKS = "user=u&tenant=uni&lane=l&kind_prefix=timer.&tag=exam&tube=t"


@pytest.fixture
async def queue(api: Api) -> Queue:
    """Five tasks of one user, and one of another."""
    mine = NewTask("", "uni", "l", kind="timer.a", user="u", tags=["exam", "1"])
    queue = Queue(api.store)
    await queue.put_many("t", [mine] * 5 + [NewTask("", user="v", lane="m", kind="text", tags=["other"])])
    return queue


@pytest.mark.parametrize("by", ["user=u", "lane=l", "kind_prefix=timer", "tag=exam", ALL_MARKS])
async def test_tasks_are_found_by_each_field_in_pages(api: Api, queue: Queue, by: str) -> None:
    found, path = [], f"{TASKS}?{by}&limit=2"
    while path:
        response = await api.call("GET", path)
        assert response.status == 200
        assert len(response.json["tasks"]) <= 2
        found += response.json["tasks"]
        path = response.json["next"] and f"{TASKS}?{by}&limit=2&cursor={response.json['next']}"
    assert [task["user"] for task in found] == ["u"] * 5
    assert len({task["id"] for task in found}) == 5
    states = [task["state"] for task in found]  # in a lane the first task comes with the last page of those behind it
    assert states == (["locked"] * 4 + ["ready"] if by == "lane=l" else ["ready", *["locked"] * 4])
    alone = (await api.call("GET", f"{TASKS}?{by}")).json["tasks"]
    assert [task["state"] for task in alone] == ["ready", *["locked"] * 4]


async def test_pages_cover_all_kinds_with_a_prefix(api: Api, queue: Queue) -> None:
    await queue.put_many("t", [NewTask("", kind=f"timer.{name}") for name in ("-", "b", "a-b", "ü")])
    kinds: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        response = await api.call("GET", f"{TASKS}?kind_prefix=timer.&limit=1{cursor}")
        kinds += [task["kind"] for task in response.json["tasks"]]
        cursor = response.json["next"] and f"&cursor={response.json['next']}"
    assert sorted(kinds) == sorted(["timer.a"] * 5 + ["timer.-", "timer.b", "timer.a-b", "timer.ü"])


async def test_a_malformed_cursor_is_refused(api: Api, queue: Queue) -> None:
    assert (await api.call("GET", f"{TASKS}?user=u&cursor=nonsense")).code == "CURSOR_MALFORMED"


async def test_all_tasks_of_a_user_are_cancelled(api: Api, queue: Queue) -> None:
    response = await api.call("POST", "/v1/queue/cancellations", {"user": "u", "kind_prefix": "timer."})
    assert (response.status, response.json) == (200, {"cancelled": 5, "flagged": 0})
    left = (await api.call("GET", TASKS)).json["tasks"]
    assert [task["user"] for task in left] == ["v"]


@pytest.mark.parametrize("body", [{}, {"tube": "t"}])
async def test_a_cancellation_without_a_selection_is_refused(api: Api, queue: Queue, body: dict[str, str]) -> None:
    assert (await api.call("POST", "/v1/queue/cancellations", body)).code == "SELECTION_EMPTY"


async def test_stats_count_the_states(api: Api, queue: Queue) -> None:
    result = (await api.call("GET", "/v1/queue")).json["tubes"]["t"]
    assert result["states"] == {"waiting": 0, "ready": 2, "locked": 4, "taken": 0, "buried": 0}


async def test_an_unknown_state_is_refused(api: Api, queue: Queue) -> None:
    response = await api.call("GET", f"{TASKS}?state=zzz")
    assert (response.status, response.code) == (400, "WRONG_VALUE")
    assert (await api.call("POST", "/v1/queue/cancellations", {"user": "u", "state": "zzz"})).code == "WRONG_VALUE"
    assert len((await api.call("GET", f"{TASKS}?state=ready")).json["tasks"]) == 2


@pytest.mark.parametrize("by", ["tube=t", "user=u", "tag=exam", "lane=l", "kind_prefix=timer"])
async def test_every_page_but_the_last_is_full(api: Api, by: str) -> None:
    """The tasks found lie far apart, among others that do not match."""
    other = NewTask("", user="u", lane="l", kind="timer.a", tags=["exam"])
    tasks = [NewTask("", "uni", "l", user="u", kind="timer.b", tags=["exam"]), *[other] * 9]
    await Queue(api.store).put_many("t", tasks * 30)
    sizes: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await api.call("GET", f"{TASKS}?{by}&tenant=uni&limit=7{cursor}")).json
        sizes.append(len(page["tasks"]))
        cursor = page["next"] and f"&cursor={page['next']}"
    assert sum(sizes) == 30
    assert all(size >= 7 for size in sizes[:-1])


async def test_an_operator_pauses_a_tube_with_a_reason_and_resumes_it(api: Api, queue: Queue) -> None:
    response = await api.call("POST", "/v1/queue/tubes/t:pause", {"reason": "the provider is down"})
    assert (response.status, response.json["paused"]["reason"]) == (200, "the provider is down")
    (tube,) = (await api.call("GET", "/v1/queue/tubes")).json["tubes"]
    assert (tube["name"], tube["paused"]["reason"], tube["stats"]["states"]["locked"]) == (
        "t",
        "the provider is down",
        4,
    )
    assert (await api.call("POST", "/v1/queue/tubes/t:pause", {"reason": ""})).code == "TOO_SHORT"
    assert (await api.call("POST", "/v1/queue/tubes/t:resume")).json["paused"] is None


async def test_a_tube_that_nobody_knows_is_not_changed_and_no_empty_list(api: Api) -> None:
    many = {"tube": "smss", "kind_prefix": "k", "before": 2**50, "expected": 1}
    for method, path, body in (
        ("POST", "tubes/smss:pause", {"reason": "a slip"}),
        ("POST", "tubes/smss:resume", None),
        ("PATCH", "tubes/smss", {"pace": 2}),
        *(("GET", f"{path}?tube=smss", None) for path in ("tasks", "tasks:count", "lanes")),
        *(("POST", f"tasks:{verb}", many) for verb in ("kick", "bury", "cancel")),
        ("POST", "cancellations", {"tube": "smss", "kind_prefix": "k"}),
    ):
        unknown = await api.call(method, f"/v1/queue/{path}", body)
        assert (unknown.status, unknown.code) == (404, "TUBE_UNKNOWN"), path
    assert (await api.call("GET", "/v1/queue/tasks?tube=webhooks")).json["tasks"] == []  # known before its first task
    assert "smss" not in [tube["name"] for tube in (await api.call("GET", "/v1/queue/tubes")).json["tubes"]]


async def test_who_waits_for_a_message_reads_why_nothing_moves(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADA_HTTP", api.url.removeprefix("http://"))
    monkeypatch.setenv("ADA_API_KEY", api.secret)
    for tube in ("sms", "vk"):
        await Tubes(api.store).pause(tube, "anna", "the gateway moves")
    words = ["send", "--to", "sms:+79991112233", "--text", "x", "--wait"]
    sending, said = asyncio.create_task(asyncio.to_thread(main, words)), ""

    def is_told() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return "by anna: the gateway moves; `./ada queue resume sms`\n" in said

    await until(is_told)
    (waiting,) = (await api.call("GET", "/v1/deliveries")).json["deliveries"]
    await api.call("DELETE", f"/v1/deliveries/{waiting['id']}")
    assert (await sending, said.count("is paused since")) == (1, 1)


async def test_an_operator_sets_the_weight_of_a_tenant_and_takes_it_back(api: Api) -> None:
    async def put(weight: object) -> ApiResponse:
        return await api.call("PUT", "/v1/queue/weights/uni", {"weight": weight})

    async def weights() -> object:
        return (await api.call("GET", "/v1/queue/tubes")).json["weights"]

    assert ((await put(3)).json, await weights()) == ({"tenant": "uni", "weight": 3}, {"uni": 3})
    assert [(await put(one)).status for one in (0, 101, "2", 1.5)] == [400] * 4
    assert ((await put(1)).status, await weights()) == (200, {})


async def test_a_group_of_dead_letters_is_listed_kicked_and_dropped(api: Api, queue: Queue) -> None:
    found = (await api.call("GET", f"{TASKS}?user=u")).json["tasks"]
    for task in found:
        await api.call("POST", f"{TASKS}/{task['id']}:bury")
    listed = (await api.call("GET", "/v1/queue/dead-letters")).json
    (group,) = listed["groups"]
    assert (group["tube"], group["kind"], group["error"], group["size"]) == ("t", "timer.a", "", 5)
    body = {"tube": "t", "kind": "timer.a", "error": "", "before": listed["now"] + 1000, "expected": 2}
    response = await api.call("POST", "/v1/queue/dead-letters:kick", body)
    assert (response.status, response.json) == (200, {"changed": 2, "left": 0})
    response = await api.call("POST", "/v1/queue/dead-letters:cancel", {**body, "expected": 3})
    assert (response.status, response.json) == (200, {"changed": 3, "left": 0})
    assert (await api.call("GET", "/v1/queue/dead-letters")).json["groups"] == []


async def test_everything_filtered_is_changed_but_no_more_than_was_seen_and_nothing_later(
    api: Api, queue: Queue
) -> None:
    async def change(verb: str, **body: object) -> object:
        response = await api.call("POST", f"{TASKS}:{verb}", body)
        return response.json if response.status == 200 else response.code

    seen = (await api.call("GET", f"{TASKS}:count?user=u")).json
    assert (seen["count"], seen["has_more"]) == (5, False)
    before = seen["now"] + 1
    await until(lambda: time.time() * 1000 > before)
    (late,) = await queue.put_many("t", [NewTask("", "uni", user="u", kind="late")])
    assert await change("bury", user="u", before=before, expected=3) == {"changed": 3, "unchanged": 0, "next": None}
    assert await change("bury", user="u", before=before, expected=9) == {"changed": 2, "unchanged": 4, "next": None}
    for query, count in (("state=buried", 5), ("state=ready", 2), ("state=ready&tube=t", 2), ("kind_prefix=timer", 5)):
        assert (await api.call("GET", f"{TASKS}:count?{query}")).json["count"] == count
    assert await change("kick", state="buried", before=before - 10_000, expected=9) == {
        "changed": 0,
        "unchanged": 5,
        "next": None,
    }
    now = before + 60_000
    assert await change("kick", state="buried", tube="t", before=now, expected=4) == {
        "changed": 4,
        "unchanged": 0,
        "next": None,
    }
    assert await change("cancel", user="u", before=now, expected=100) == {"changed": 6, "unchanged": 0, "next": None}
    assert await change("cancel", before=now, expected=100) == "SELECTION_EMPTY"
    assert (await api.call("GET", f"{TASKS}:count")).code == "SELECTION_EMPTY"
    assert (await api.call("GET", f"{TASKS}/{late}")).status == 404


async def test_a_tube_has_a_pace_that_an_operator_changes_and_a_task_says_what_it_belongs_to(
    api: Api, queue: Queue
) -> None:
    await Tubes(api.store).create(Tube("t", attempts=7))
    changed = await api.call("PATCH", "/v1/queue/tubes/t", {"pace": 2.5})
    assert (changed.status, changed.json["pace"], changed.json["attempts"]) == (200, 2.5, 7)
    assert (await api.call("PATCH", "/v1/queue/tubes/t", {"pace": None})).json["pace"] is None
    assert (await api.call("PATCH", "/v1/queue/tubes/t", {"pace": 0})).status == 400
    job = await queue.put("jobs.digest", NewTask("", lane="uni/digest.7"))
    event = await queue.put("events", NewTask("", lane="telegram:42"))
    step = await queue.put("scenarios.models", NewTask("", tags=["run:0.ab"]))
    links = [(await api.call("GET", f"{TASKS}/{one}")).json["links"] for one in (job, event, step)]
    assert links == [{"job": "digest.7"}, {"person": "telegram:42"}, {"run": "0.ab"}]
    assert (await api.call("GET", f"{TASKS}/{job}")).json["put"] > 1_700_000_000_000


async def test_the_longest_lanes_and_one_lane_in_its_order(api: Api) -> None:
    queue, lanes = Queue(api.store), "/v1/queue/lanes"
    for tube, lane, count in (("t", "a/b", 3), ("t", "c", 5), ("u", "d", 2), ("u", "alone", 1)):
        await queue.put_many(tube, [NewTask(str(n), lane=lane) for n in range(count)])
    found = (await api.call("GET", lanes)).json
    assert [(one["tube"], one["lane"], one["tasks"]) for one in found["lanes"]] == [
        ("t", "c", 5),
        ("t", "a/b", 3),
        ("u", "d", 2),
    ]
    assert (found["lanes"][0]["head"]["body"], found["read"], found["is_complete"]) == ("0", 4, True)
    assert [one["lane"] for one in (await api.call("GET", f"{lanes}?tube=t&limit=1")).json["lanes"]] == ["c"]
    bodies, path = "", "/v1/queue/tubes/t/lanes/c?limit=2"
    while path:
        page = (await api.call("GET", path)).json
        assert page["behind"] == 4
        bodies += "".join(task["body"] for task in page["tasks"])
        path = page["next"] and f"/v1/queue/tubes/t/lanes/c?limit=2&cursor={page['next']}"
    assert bodies == "01234"
    slash = (await api.call("GET", "/v1/queue/tubes/t/lanes/a%2Fb")).json
    assert [task["state"] for task in slash["tasks"]] == ["ready", "locked", "locked"]
    assert (await api.call("GET", "/v1/queue/tubes/t/lanes/none")).json == {"tasks": [], "behind": 0, "next": None}
