"""The bot in force and the runs of its scenarios over HTTP."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from core.model.people import User
from core.processes.register import BotFault, BotFaults
from core.redis.store import Store
from delivery.http.context import ApiServices
from scenarios.bot.data import Data
from scenarios.engine import completed, failed
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.runs import Runs, StoredRun, run_id
from scenarios.execution.versions import LastGood, Versions
from scenarios.inspection.bots import BotReader
from scenarios.inspection.runs import RunReader
from scenarios.loader import load
from scenarios.schema.variables import Change
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.variables import Variables
from tests.delivery.conftest import Api

TRIGGERS = 'text: {exact: {/join: club.join}, "*": club.other}'
CLUB = """
join:
  actions:
    - {type: send, text: "Welcome, {first_name}", inline: [[Rules]]}
    - {type: user, user_state: member, chain: completed}
    - {type: send, text: Try again, chain: failed}
    - {type: scenario, value: club.other, chain: completed}
other:
  actions: [{type: send, text: "by ${CLUB_KEY}"}]
"""
SECRET = "s3cret-of-the-club"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bot's files."""
    monkeypatch.setenv("CLUB_KEY", SECRET)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "club.yaml").write_text(CLUB)
    (tmp_path / "triggers.yaml").write_text(TRIGGERS)
    return tmp_path


@pytest.fixture
async def services(services: ApiServices) -> ApiServices:
    store = services.core.store
    return replace(services, runs=RunReader(store), bots=BotReader(store), forms=Forms(store))


async def put_in_force(api: Api, folder: Path) -> ActiveBot:
    """The bot as a process of the scenarios has loaded it."""
    store, bot = api.services.core.store, ActiveBot(folder)
    await LastGood(store, Versions(store), "default", bot).store()
    return bot


async def begun(api: Api, folder: Path, user: int = 7) -> tuple[Runs, StoredRun]:
    """A run whose first action has ended."""
    store = api.services.core.store
    versions = Versions(store)
    version = await versions.publish("abc", load(folder).bot)
    runs = Runs(store, versions, "default")
    event: dict[str, Data] = {"id": str(user), "source": "t", "channel": "vk", "user_id": user, "event_text": "/join"}
    person = f"vk:{user}"
    run = await runs.begin(
        run_id("default", f"vk.t.{user}", person, store.shards), "0.1", person, event, version, ["club.join"]
    )
    return runs, await runs.record(run, run.run.in_order[0].path, completed({"reached": 1}))


async def test_runs_are_listed_shown_and_dropped(api: Api, folder: Path) -> None:
    runs, run = await begun(api, folder)
    await begun(api, folder, user=8)
    page = (await api.call("GET", "/v1/runs?limit=1")).json
    assert [one["person"] for one in page["runs"]] == ["vk:8"]
    page = (await api.call("GET", f"/v1/runs?limit=1&cursor={page['next']}")).json
    assert [(one["person"], one["state"], one["text"]) for one in page["runs"]] == [("vk:7", "running", "/join")]
    assert (await api.call("GET", "/v1/runs?person=vk:9")).json == {"runs": [], "next": None}
    shown = (await api.call("GET", f"/v1/runs/{run.id}")).json
    assert [(one["node"], one["state"]) for one in shown["actions"]][:2] == [
        ("club.join:1", "completed"),
        ("club.join:2", "pending"),
    ]
    assert (await api.call("POST", f"/v1/runs/{run.id}:drive")).code == "RUN_WITHOUT_TASK"
    reason = {"Ada-Reason": "it hangs"}
    assert (await api.call("POST", f"/v1/runs/{run.id}:drop", headers=reason)).json["state"] == "dropped"
    assert (await api.call("POST", f"/v1/runs/{run.id}:drop")).code == "RUN_OVER"
    late = await runs.record(run, run.run.in_order[1].path, failed("LATE", "too late"))
    assert late.is_dropped
    assert not late.run.in_order[1].is_over
    log = (await api.call("GET", "/v1/actions")).json["actions"]
    assert (log[0]["target"], log[0]["why"]) == (f"/v1/runs/{run.id}:drop", "it hangs")


async def test_what_is_unknown_or_malformed_is_refused(api: Api) -> None:
    for path, code in (
        ("/v1/runs/0.def", "RUN_NOT_FOUND"),
        ("/v1/runs/nonsense", "RUN_NOT_FOUND"),
        ("/v1/bots", "BOT_NOT_LOADED"),
        ("/v1/scenarios/x", "BOT_NOT_LOADED"),
        ("/v1/scenarios/x?version=00", "SCENARIO_NOT_FOUND"),
        *((f"/v1/runs?{query}", "WRONG_FORMAT") for query in ("person=", "person=7", "cursor=", "cursor=0.abc")),
        ("/v1/runs?state=done", "WRONG_VALUE"),
        ("/v1/runs?since=yesterday", "TIME_MALFORMED"),
    ):
        assert (await api.call("GET", path)).code == code, path


async def test_the_bot_in_force_is_shown_with_its_problems_and_without_secrets(api: Api, folder: Path) -> None:
    good = await put_in_force(api, folder)
    bot = (await api.call("GET", "/v1/bots")).json
    assert (bot["version"], bot["is_good"], bot["problem_count"]) == (good.version, True, 2)
    assert {one["severity"] for one in bot["problems"]} == {"warning"}
    assert [(one["event"], one["kind"], one["key"], one["scenario"]) for one in bot["triggers"]] == [
        ("text", "exact", "/join", "club.join"),
        ("text", "*", "", "club.other"),
    ]
    assert [(one["name"], one["place"], one["actions"]) for one in bot["scenarios"]] == [
        ("club.join", "scenarios/club.yaml:2", 4),
        ("club.other", "scenarios/club.yaml:8", 1),
    ]
    graph = (await api.call("GET", "/v1/scenarios/club.join")).json
    assert [(one["source"], one["target"], one["label"]) for one in graph["edges"]] == [
        ("club.join:1", "club.join:2", "completed"),
        ("club.join:2", "club.join:3", "failed"),
        ("club.join:3", "club.join:4", "completed"),
        ("club.join:4", "club.other:1", "splices in"),
    ]
    assert [one["y"] for one in graph["nodes"]] == [42, 150, 258, 366, 474]
    assert graph["nodes"][4]["fields"]["text"] == "by ${CLUB_KEY}"
    (folder / "scenarios" / "club.yaml").write_text(CLUB.replace("user_state", "user_stat"))
    await put_in_force(api, folder)
    problems = (await api.call("GET", "/v1/bots")).json["problems"]
    errors = [one for one in problems if one["severity"] == "error"]
    assert {(one["file"], one["line"]) for one in errors} == {("scenarios/club.yaml", 5)}
    first = await api.call("GET", f"/v1/scenarios/club.join?version={good.version}")
    assert "user_state" in first.json["nodes"][1]["fields"]


async def test_a_dry_run_shows_each_step_and_message_and_takes_outcomes(api: Api, folder: Path) -> None:
    await put_in_force(api, folder)
    event = {"channel": "vk", "user_id": 7, "event_text": "/join", "first_name": "Anna"}

    async def played(**outcomes: Any) -> Any:
        return (await api.call("POST", "/v1/scenarios:dry-run", {"event": event, **outcomes})).json

    found = await played()
    assert found["started"] == {"club.join": "triggers.yaml:1"}
    assert [one["outcome"] for one in found["actions"]] == ["completed", "completed", "drop", "drop"]
    assert found["actions"][0]["shown"]["messages"][0]["text"] == "Welcome, Anna"
    assert found["actions"][1]["why"] == "action 1 ended as completed; the chain is completed"
    found = await played(fail=["club.join:2"])
    assert [one["outcome"] for one in found["actions"]][:3] == ["completed", "failed", "completed"]
    assert SECRET not in str(found)
    assert "by ${CLUB_KEY}" in str(found)
    assert (await api.call("GET", "/v1/runs")).json["runs"] == []
    for wrong in ({}, {"channel": "vk"}, {"channel": "vk", "user_id": 7, "kind": "thunder"}, {"Text": 1}):
        refused = await api.call("POST", "/v1/scenarios:dry-run", {"event": wrong})
        assert refused.status == 400, wrong


async def test_the_answers_to_a_form_are_a_table_in_the_order_of_its_questions(api: Api) -> None:
    forms = Forms(api.store)
    given = [("vk:7", "room", "12"), ("vk:8", "name", "B"), ("vk:7", "name", "A")]
    for number, (person, field, value) in enumerate(given):
        await forms.note("default", "signup", person, {field: FormAnswer({"name": 1, "room": 2}[field], value, number)})
    assert (await api.call("GET", "/v1/forms")).json == {"forms": ["signup"]}
    page = (await api.call("GET", "/v1/forms/signup?limit=1")).json
    assert page["columns"] == ["name", "room"]
    assert [(one["person"], one["answers"]) for one in page["rows"]] == [("vk:7", {"name": "A", "room": "12"})]
    page = (await api.call("GET", f"/v1/forms/signup?cursor={page['next']}")).json
    assert [(one["person"], one["answers"]) for one in page["rows"]] == [("vk:8", {"name": "B"})]
    lines = (await api.call("GET", "/v1/forms/signup/answers.csv")).body.decode().splitlines()
    assert [[line.split(",")[0], *line.split(",")[3:]] for line in lines] == [
        ["person", "name", "room"],
        ["vk:7", "A", "12"],
        ["vk:8", "B", ""],
    ]
    assert (await api.call("GET", "/v1/forms/signup/answers.csv?excel")).body.startswith("\ufeffperson;".encode())
    for path in ("/v1/forms/other", "/v1/forms/other/answers.csv"):
        assert (await api.call("GET", path)).json["code"] == "FORM_NOT_FOUND"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
async def test_the_pages_of_a_form_neither_overlap_nor_skip_rows_of_one_moment(store: Store, size: int) -> None:
    forms, people = Forms(store), [f"vk:{number}" for number in range(7)]
    for number, person in enumerate(people):
        await forms.note("default", "signup", person, {"name": FormAnswer(1, person, 1000 + number // 3)})
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await forms.table("default", "signup", cursor, size)
        found += [row.person for row in page.rows]
        cursor = page.next
    assert sorted(found) == people


async def test_what_a_bot_remembers_of_a_person_is_exported_and_deleted_with_it(api: Api) -> None:
    store, event = api.services.core.store, {"channel": "vk", "user_id": "7"}
    await Variables(store, "default").change("run:0", event, [Change("person", "name", "set", "Anna", 0)])
    await Forms(store).note("default", "signup", "vk:7", {"room": FormAnswer(1, "12", 1)})
    remembered = {"person": "vk:7", "variables": {"name": "Anna"}, "forms": {"signup": {"room": "12"}}}
    assert (await api.call("GET", "/v1/variables?person=vk:7")).json == remembered
    await api.call("POST", "/v1/users", {"id": 1, "name": "Anna", "contacts": {"vk": "7"}})
    assert (await api.call("DELETE", "/v1/users/1")).status < 300
    nothing = {"person": "vk:7", "variables": {}, "forms": {}}
    assert (await api.call("GET", "/v1/variables?person=vk:7")).json == nothing
    assert (await Forms(store).table("default", "signup")).rows == []


async def test_the_list_of_bots_shows_each_key_its_own_and_an_operator_all(api: Api, folder: Path) -> None:
    await put_in_force(api, folder)
    fault = BotFault("bot telegram", "Telegram does not accept the token", 1)
    await BotFaults(api.store).note("school", fault)
    rows = (await api.call("GET", "/v1/bots:all")).json["bots"]
    assert [(one["tenant"], one["is_good"], [part["reason"] for part in one["stopped"]]) for one in rows] == [
        ("default", True, []),
        ("school", False, [fault.reason]),
    ]
    _, own = await api.services.api_keys.create("own", ["read"])
    listed = (await api.call("GET", "/v1/bots:all", headers={"Authorization": f"Bearer {own}"})).json["bots"]
    assert [one["tenant"] for one in listed] == ["default"]
    await BotFaults(api.store).clear("school", fault.part)
    assert len((await api.call("GET", "/v1/bots:all")).json["bots"]) == 1


async def test_a_bot_shows_what_it_does_by_itself_and_a_scenario_where_its_buttons_lead(api: Api, folder: Path) -> None:
    (folder / "schedule.yaml").write_text(
        "weekly: {each: Monday 8:00, scenario: club.other}\ncall: {before: person.call, by: 1d, scenario: club.other}\n"
    )
    (folder / "variables.yaml").write_text("person:\n  call: date\n")
    rows = "[[{Rules: club.other}, {Others: club.other}, {Site: 'https://a.b'}]]"
    menu = f"menu: {{actions: [{{type: send, text: Menu, inline: {rows}}}]}}\n"
    (folder / "scenarios" / "club.yaml").write_text(CLUB + menu)
    bot = await put_in_force(api, folder)
    assert not [one for one in bot.problems if one.severity == "error"]
    weekly, call = sorted((await api.call("GET", "/v1/bots")).json["schedules"], key=lambda one: -len(one["next"]))
    moments = [datetime.fromisoformat(one) for one in weekly["next"]]
    assert [(one.weekday(), one.hour) for one in moments] == [(0, 8)] * 3
    assert moments == sorted(set(moments))
    assert (weekly["words"], call["before"], call["next"]) == ("Monday 8:00", "person.call", [])
    graph = (await api.call("GET", "/v1/scenarios/club.menu")).json
    assert [(one["id"], one["n"]) for one in graph["nodes"]] == [("club.menu:1", 1), ("club.other:0", 0)]
    assert [(one["source"], one["target"], one["label"]) for one in graph["edges"]] == [
        ("club.menu:1", "club.other:0", "Rules, Others")
    ]
    assert graph["nodes"][0]["yaml"].startswith("text: Menu\ninline:\n")


async def test_a_dry_run_knows_what_the_bot_remembers_of_the_person_if_it_is_asked_to(api: Api, folder: Path) -> None:
    (folder / "variables.yaml").write_text("person:\n  course: text\n")
    (folder / "scenarios" / "club.yaml").write_text(
        'join: {actions: [{type: send, text: "Course {person.course|fallback:none}"}]}\nother: {actions: []}\n'
    )
    await put_in_force(api, folder)
    store = api.services.core.store
    event: dict[str, Any] = {"channel": "vk", "user_id": 7, "kind": "text", "event_text": "/join"}
    await Variables(store, "default").change("run:0", event, [Change("person", "course", "set", "second", 0)])
    for stored, text in ((True, "Course second"), (False, "Course none")):
        played = (await api.call("POST", "/v1/scenarios:dry-run", {"event": event, "stored": stored})).json
        assert played["actions"][0]["send"]["text"] == text


async def test_a_run_names_its_person_if_the_directory_knows_it(api: Api, folder: Path) -> None:
    _, run = await begun(api, folder)
    await begun(api, folder, user=8)
    await api.services.core.directory.users.create("default", User("m", "Maria", contacts={"vk": ["7"]}))
    names = {one["person"]: one["name"] for one in (await api.call("GET", "/v1/runs")).json["runs"]}
    assert names == {"vk:7": "Maria", "vk:8": None}
    assert (await api.call("GET", f"/v1/runs/{run.id}")).json["name"] == "Maria"
