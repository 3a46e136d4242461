"""After a person was deleted, no key has its name, its id or its addresses, except those that are listed here."""

from datetime import timedelta

from core.deliveries.received import Choices, ReceivedMessages
from core.jobs import JobId, JobState, Schedule
from core.model.content import Button
from core.model.json_form import compact_json
from core.model.people import User
from core.orders.templates import MessageTemplate, MessageTemplates
from core.redis.keys import kind_of
from core.threads.threads import ReplyRoute
from core.threads.typed_addresses import HeldReplies
from providers.sign_in import Tokens, Vault
from providers.sign_in.stored import new_key
from scenarios.execution.runs import run_id
from scenarios.schema.variables import Change
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.people import People
from scenarios.stores.promo import Promo, Promos
from scenarios.stores.questions import AskedBy, Questions
from scenarios.stores.requests import NewRequest, Requests
from scenarios.stores.variables import Variables
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.support.audited import dump
from tests.support.servers import Server, several_shards
from tests.support.waiting import until

__all__ = ["several_shards"]

TENANT = "default"
ID, PHONE, MAIL, CHAT, GROUP = 424242, "+79990000042", "zaphoda@example.org", "100000042", "-100777"
MARKS = (str(ID), "Zaphoda", "zaphoda", PHONE[1:], CHAT)
EVENT = {"channel": "telegram-bot", "user_id": CHAT, "chat_id": GROUP, "username": "Zaphoda_B", "first_name": "Zaphoda"}

KEPT = {
    "job": "its id and state: it is stopped, and a new person of this id may start it again",
    "jobs": "the list of jobs",
    "actions": "who has done what: an operator answers for it, so it lasts as long as the action log",
    "history": "the id of a recipient: the sender's statistics stay true; names and addresses are taken out",
    "outcomes": "as history",
    "references": "which messages of a dialog were sent, so that they can be marked as read; for 30 days",
    "events": "the same in the stream of changes, which is trimmed by its length",
    "closed_inbox": "its id, so that replies to its messages go to the office; for as long as these can be replied to",
    "stepresult": "what a step of a run has done, for its repeat",
}
"""Kinds of keys that may name a person that was deleted, and why."""


async def live(api: Api) -> None:
    """Do what leaves traces of a person: in the directory, in chats, in deliveries, with jobs and sign-ins."""
    store, core = api.store, api.services.core
    contacts = {"telegram-bot": [CHAT], "sms": [PHONE]}
    await core.directory.users.create(TENANT, User(ID, "Zaphoda Beeblebrox", email=MAIL, contacts=contacts))
    assert (await api.call("POST", "/v1/groups", {"id": "crew"})).status < 300
    assert (await api.call("PUT", f"/v1/groups/crew/members/{ID}")).status < 300
    await api.services.sessions.begin_as_person(TENANT, ID)
    await MessageTemplates(store).save(TENANT, ID, MessageTemplate(title="Mine", message={"text": "Zaphoda"}))
    await people_writes(api)
    await core.jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
    await core.jobs.start(JobId(TENANT, "hunt", str(ID)), {"query": "Zaphoda"})
    await Tokens(store, Vault([new_key()]), {}).write(TENANT, "vacancies", str(ID), {"access_token": "x"})


async def people_writes(api: Api) -> None:
    """Store what bots store of a person that writes in private and in a group."""
    store = api.store
    await People(store, TENANT).met(EVENT)
    await People(store, TENANT).set_state("telegram-bot", CHAT, "state of Zaphoda", timedelta(days=1))
    run = run_id(TENANT, "event 1", f"telegram-bot:{CHAT}", store.shards)
    shard = store.shard_of_person(TENANT, "telegram-bot", CHAT)
    about = TENANT, f"telegram-bot:{CHAT}", 1000, '["a.start"]', "version", "v", "event", '{"first_name":"Zaphoda"}'
    assert len(await store.run("begin_run", shard, run, *about)) == 1
    for chat in (GROUP, CHAT):
        await Questions(store, TENANT).open({**EVENT, "chat_id": chat}, AskedBy(run, (0,)), timedelta(days=1))
    for scope in ("person", "chat"):
        event = {**EVENT, "chat_id": CHAT}
        await Variables(store, TENANT).change("run:1", event, [Change(scope, "name", "set", "Zaphoda", 0)])
    await Promos(store, TENANT).store(Promo("ZAPHOD42", "winter", CHAT, 0, step="step of a promo"))
    await Forms(store).note(TENANT, "signup", f"telegram-bot:{CHAT}", {"name": FormAnswer(1, "Zaphoda", 1)})
    requests = Requests(store, TENANT)
    for number in range(450):
        is_hers = number % 3 == 0
        user, name = (CHAT, "Zaphoda") if is_hers else ("5", "Trillian")
        await requests.store(f"step {number}", NewRequest("help", "telegram-bot", user, first_name=name, text="Help"))
    rows = compact_json([[CHAT, 1, "reference"]])
    await store.run("note_references", store.shard_of(f"telegram-bot:{CHAT}"), "telegram-bot", "bot", 1000_000, rows)
    await Choices(store).remember(TENANT, "telegram-bot", [CHAT], [Button("Zaphoda", "x")])
    await Choices(store).remember_buttons(TENANT, "telegram-bot", [CHAT], [Button("Zaphoda", "x")])
    await store.run("join_day", shard, TENANT, "telegram-bot", CHAT, "part", '["Zaphoda"]', "join", 1000, 1000)
    await Choices(store).remember(TENANT, "sms", [PHONE], [Button("Zaphoda", "x")])
    await HeldReplies(store).hold(TENANT, ReplyRoute("sms", PHONE), "addresses.x", {"event_text": f"Call {PHONE}"})
    await ReceivedMessages(store).note_passed_on(TENANT, "sms", PHONE, "m1", "3.x", "Zaphoda here")


async def kinds_with(server: Server) -> dict[str, str]:
    """Return the kinds of keys that name the person, each with one of them."""
    found = await dump(server.url)
    return {
        kind.name if (kind := kind_of(name)) else name: name
        for name, stored in found.items()
        if any(mark in f"{name} {stored.value}" for mark in MARKS)
    }


async def test_nothing_names_a_person_that_was_deleted_but_what_is_listed(
    api: Api, courier: Couriers, server: Server
) -> None:
    """Regression: `@name` led to a deleted person for 400 days, and its requests, runs and open questions stayed."""
    await courier("telegram-bot")
    await courier("sms")
    await live(api)
    body = delivery_body(recipients=[{"id": ID}], channels=["telegram-bot", "sms"])
    sent = await api.call("POST", "/v1/deliveries", body, headers={"Idempotency-Key": "1"})
    assert sent.status == 202, sent.json

    async def is_over() -> bool:
        return bool((await api.call("GET", f"/v1/deliveries/{sent.json['id']}")).json["state"] == "finished")

    await until(is_over)
    assert {"username", "promos", "question", "request", "run", "person"} <= (await kinds_with(server)).keys()
    assert (await api.call("DELETE", f"/v1/users/{ID}")).status == 204
    left = await kinds_with(server)
    left.pop("by", None)  # until the task is claimed: the index of the kept task by its lane
    assert {kind: key for kind, key in left.items() if kind not in KEPT} == {}
    assert KEPT.keys() - left.keys() == set(), "listed, and not there"
    assert [one async for one in People(api.store, TENANT).all()] == []
    job = await api.services.core.jobs.find(JobId(TENANT, "hunt", str(ID)))
    assert (job.record.state, job.record.parameters) == (JobState.STOPPED, {})
    assert await People(api.store, TENANT).named("telegram-bot", "@zaphoda_b") is None
    (promo,) = await Promos(api.store, TENANT).newest(2)
    assert (promo.code, promo.name, promo.user_id) == ("ZAPHOD42", "winter", "deleted"), "nobody can use it"
    assert len(await Requests(api.store, TENANT).newest(["help"])) == 100, "those of others stay"


async def test_the_places_of_a_person_that_is_deleted_are_free_again(api: Api) -> None:
    """`reserve` keeps a place in two lists: the bot's had it for ever, and nobody else got it."""
    variables = Variables(api.store, TENANT)
    core = api.services.core
    await core.directory.users.create(TENANT, User(ID, "Zaphoda", contacts={"telegram-bot": [CHAT]}))

    async def reserve(chat: str, place: str, step: str) -> None:
        event = {**EVENT, "user_id": chat}
        await variables.note_places(step, event, "washes", 0)
        for scope in ("bot", "person"):
            await variables.change(step, event, [Change(scope, "washes", "append", place, 0, [])])

    async def taken() -> object:
        return (await variables.stored("bot", {}, 0)).get("washes")

    await reserve(CHAT, "2026-12-03 10:00", "run:1")
    await reserve("5", "2026-12-03 10:00", "run:2")
    await variables.change("run:3", EVENT, [Change("person", "tags", "append", "red", 0, [])])
    await variables.change("run:4", EVENT, [Change("bot", "tags", "append", "red", 0, [])])
    await variables.give_places_back("telegram-bot", CHAT)  # as by a process that was killed then
    assert (await api.call("DELETE", f"/v1/users/{ID}")).status == 204
    assert await taken() == ["2026-12-03 10:00"], "that of the other one"
    assert (await variables.stored("bot", {}, 0))["tags"] == ["red"], "a list of the same name that is of no places"
