"""Calls every verb of core, for tests of rules that hold for all of them."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from io import BytesIO

from msgspec.structs import replace

from core.admission.actions import ActionLog, OperatorAction
from core.admission.quotas import Quotas
from core.answers import Answers, OpenQuestions
from core.answers.answers import AnsweredMessage
from core.answers.numbers import AnswerNumbers
from core.deliveries.channels import StoredAccounts
from core.deliveries.delivery_reports import DeliveryReports, EntryName, MessageReferences, Reference
from core.deliveries.histories.parcels import Entry, load_parcel
from core.deliveries.received import ReceivedMessage, ReceivedMessages
from core.directory import Directory
from core.directory.csv_cells import FileKind
from core.directory.importing import Importing
from core.directory.importing.journal import Journal, roll_forward
from core.directory.linking import Linking, NotMailed
from core.jobs import Actor, JobId, Jobs, JobState, Schedule
from core.jobs.record import OwnState
from core.model.delivery import Quota, Recipient, Strategy
from core.model.history_key import HistoryKey
from core.model.people import Group, GroupChange, Supergroup, User, UserChange
from core.model.question import AnswerKind, Option, Question
from core.model.states import Reason, Status
from core.monitoring import Lanes
from core.orders.series import Series, SeriesStore
from core.queue import NewTask, Tube, Tubes
from core.queue.task import ClaimRequest, Settlement, SettleResult
from core.redis.primary import GRACE_MS
from core.redis.store import Argument, Store
from core.sessions import SignInCodes
from core.threads.threads import Correspondent, Inbox, ReplyRoute, ThreadMessage, Threads
from core.uploads import Uploads
from core.webhooks.event_reader import EventReader, ReadingLimits
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import AttemptRecord, EventType
from couriers.email import LinkCodeMailer
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from providers.sign_in import Service, SignIn, Tokens, Vault
from providers.sign_in.stored import forget, new_key
from scenarios.bot import Action, Bot, Place, Scenario
from scenarios.context import Waiting
from scenarios.engine import completed
from scenarios.execution.runs import Runs, run_id
from scenarios.execution.versions import Versions
from scenarios.schema.variables import Change
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.people import People
from scenarios.stores.promo import Promo, Promos
from scenarios.stores.requests import NewRequest, Requests
from scenarios.stores.variables import Variables
from tests.support.outbox import Outbox
from tests.support.servers import Server
from tests.support.stack import HOUR, SENDER, TENANT, FakeCourier, Stack, person


class RecordingStore(Store):
    """Records which scripts are called, with the number of their arguments."""

    called: dict[str, set[int]]

    async def run(self, name: str, shard: int, *arguments: Argument) -> object:
        self._record(name, arguments)
        return await super().run(name, shard, *arguments)

    async def run_each(self, name: str, calls: Iterable[tuple[int, Sequence[Argument]]]) -> list[object]:
        recorded = list(calls)
        for _, arguments in recorded:
            self._record(name, arguments)
        return await super().run_each(name, recorded)

    def _record(self, name: str, arguments: Sequence[Argument]) -> None:
        self.called.setdefault(name, set()).add(len(arguments))


async def recording_stack(server: Server) -> tuple[Stack, RecordingStore]:
    store = await RecordingStore.open(server.url)
    store.called = {}
    return Stack(store, server), store


async def call_every_verb(stack: Stack) -> None:
    """Call every verb at least once; at the end there are tasks in every state."""
    await _call_queue_verbs(stack)
    await _call_delivery_verbs(stack)
    await _call_answer_verbs(stack)
    await _call_webhook_verbs(stack)
    await _call_directory_verbs(Directory(stack.store))
    await _import_and_link(stack)
    await _call_scenario_verbs(stack)
    await _call_job_verbs(stack)
    await _call_sign_in_verbs(stack)
    await _call_action_verbs(stack)
    await StoredAccounts(stack.store).change("vk", 0, None)
    await _upload_files(Uploads(stack.store))
    series = Series(tenant=TENANT, sender=1, message={}, words="", cron="30 2 * * *", zone="Europe/Berlin")
    await SeriesStore(stack.store).create(series, stack.now())


async def _upload_files(uploads: Uploads) -> None:
    await uploads.store(TENANT, "a.pdf", BytesIO(b"content"))
    await uploads.delete(TENANT, (await uploads.store(TENANT, "b.pdf", BytesIO(b"content"))).id)


async def _call_queue_verbs(stack: Stack) -> None:
    queue = stack.queue
    ids = [
        await queue.put("t", NewTask(str(n), lane="lane" if n < 3 else "", expires=stack.now() + HOUR))
        for n in range(8)
    ]
    await queue.put("t", NewTask("deferred", due=stack.now() + HOUR))
    first, second = await stack.take(limit=2)
    await queue.extend(first, HOUR, checkpoint="so far")
    await queue.settle(first)
    await queue.release(second)
    (again,) = await stack.take(limit=1)
    await queue.suspend(again, 0)
    await queue.wake(again.task_id)
    (third,) = await stack.take(limit=1)
    await queue.turn(0, [Settlement(SettleResult.RETRY).row(third)], ClaimRequest("t", "worker", 0, HOUR, HOUR))
    await queue.bury(ids[6])
    await queue.kick(ids[6])
    await Lanes(stack.store, queue).longest("", 1)
    await Tubes(stack.store).pause("t", "an operator", "a reason")
    await ActionLog(stack.store).write(
        TENANT, OperatorAction("1", "Anna", "api", "POST /v1/groups", "/v1/groups"), "step"
    )
    await Tubes(stack.store).resume("t")
    await queue.bury(ids[7])
    await queue.cancel(ids[5])
    await stack.take(limit=1)
    await queue.notify_end(ids[6], "somebody")
    await Tubes(stack.store).create(Tube("kept", keep=HOUR / 2))
    await queue.put_once("kept", NewTask(""), source="bot", name="1")
    await stack.finish_all("kept")
    await queue.purge()
    await queue.throttle("t", "account:somebody", timedelta(minutes=1))
    await queue.learn_rate("t", "somebody", 20)
    await queue.reserve_call("t", "somebody")
    await queue.release_timer("worker", 0)
    await stack.store.run("note_primary", 0, GRACE_MS)


async def _call_delivery_verbs(stack: Stack) -> None:
    def respond(message: Message) -> Outcome:
        return Rejected(Reason.BLOCKED) if message.address == "p2" else Sent("1")

    courier = await stack.courier(FakeCourier(respond=respond))
    key = await stack.deliveries.reserve(TENANT, SENDER.id)
    quota = Quota(4, HOUR)
    await stack.deliver(person(1), person(2), Recipient(3), history_key=key, quota=quota)
    await Quotas(stack.store).read(TENANT, SENDER.id, quota)
    await stack.finished(key)
    await stack.deliveries.retry(key, TENANT, [Status.FAILED])
    await stack.finished(key)
    await stack.deliveries.record_report(await report_token(stack, key), Status.DELIVERED, "1")
    late = [(await entry_of(stack, key, "echo", 0, 0)).item(Status.SENT)]
    await DeliveryReports(stack.store).record_late(key, "echo", 0, late)
    assert await stack.deliveries.of_person.erase(TENANT, "2") == 1
    quotas = 0, TENANT, "another:1763712000000000000", 4, 1000
    for name in ("take_quota", "return_quota"):  # called only where a lane places a delivery elsewhere
        await stack.store.run(name, *quotas)
    address = TENANT, "echo", "p1"
    await stack.store.run("join_day", 0, *address, "part", "[]", "join", 0, 1000)
    await stack.store.run("end_day", 0, *address, 0, "[]", "[]", '["part"]')
    references = MessageReferences(stack.store, DeliveryReports(stack.store), "echo", "ada")
    await references.note([Reference("p1", 1, "1", EntryName(key.shard, key.suffix, "echo", 0, 1, 0, 0, 1))])
    await references.mark_read("p1", 1)
    both = [person(1, "echo", "nobody")]
    await stack.finished((await stack.deliver(*both, channels=("echo", "nobody"), strategy=Strategy.FIRST)).key)
    later = (await stack.deliver(person(1), person(2), deliver_at=stack.now() + HOUR)).key
    await stack.deliveries.reschedule(later, TENANT, stack.now() + 2 * HOUR)
    await stack.deliveries.cancel(later, TENANT, ["1"])
    await stack.stop(courier)
    await stack.deliver(person(1), kind="exam.moved", deliver_at=stack.now() + HOUR)
    assert await stack.deliveries.cancel_by(TENANT, "kind_prefix", "exam") == 1
    await stack.deliver(person(1, "nobody"), channels=("nobody",), lane="lane")


async def _call_directory_verbs(directory: Directory) -> None:
    await directory.users.create(TENANT, User(1, email="a@example.org", role="staff", contacts={"echo": ["p1"]}))
    await directory.users.create(TENANT, User(2))
    await directory.users.update(TENANT, 1, UserChange(name="Anna"))
    for name in "AB":
        await directory.groups.create(TENANT, Group(name), [1])
    await directory.groups.update(TENANT, "A", GroupChange(virtual=True))
    await directory.groups.add_member(TENANT, "A", 2)
    await directory.groups.remove_member(TENANT, "A", 2)
    for name in "ST":
        await directory.supergroups.create(TENANT, Supergroup(name, groups=["A"]))
    await directory.supergroups.update(TENANT, "S", GroupChange(title="All"))
    await directory.supergroups.add_member(TENANT, "S", "B")
    await directory.supergroups.remove_member(TENANT, "S", "B")
    await directory.ownerships.own(TENANT, 1, "group", "A")
    await directory.ownerships.own(TENANT, 1, "group", "B")
    await directory.ownerships.disown(TENANT, 1, "group", "B")
    await directory.supergroups.delete(TENANT, "T")
    await directory.groups.delete(TENANT, "B")
    await directory.users.create(TENANT, User(3))
    await directory.users.merge(TENANT, 1, 3)
    await directory.users.delete(TENANT, 2)


async def _call_scenario_verbs(stack: Stack) -> None:
    """Store two runs of one action: one has ended, one waits for a delivery."""
    versions = Versions(stack.store)
    runs = Runs(stack.store, versions, TENANT)
    place = Place("scenarios/s.yaml")
    scenario = Scenario("s.main", "main", (Action("send", {"text": "hello"}, place),), place)
    version = await versions.publish("first", Bot({scenario.name: scenario}))
    person = "echo:7"
    ended, waiting = [
        await runs.begin(
            run_id(TENANT, name, person, stack.store.shards), "0.1", person, {"id": name}, version, ["s.main"]
        )
        for name in ("e1", "e2")
    ]
    await runs.record(ended, (0, 0), completed())
    await runs.drop(ended.id)
    await runs.park(waiting, {(0, 0): Waiting(HistoryKey.new("bot", stack.store.shards))})
    await runs.drop_ended()


async def _call_job_verbs(stack: Stack) -> None:
    jobs, job_id = Jobs(stack.store), JobId(TENANT, "hunt", "1")
    await jobs.kinds.publish({"hunt": Schedule(HOUR)})
    storage, attempt = jobs.storage, "1 worker task"
    found = await storage.begin_iteration(await jobs.start(job_id), attempt)
    assert found
    begun, _ = found
    await storage.check_attempt(job_id, attempt)
    await storage.write_step(job_id, attempt, "search", "[]")
    await storage.write_line(job_id, attempt, "found nothing", "log", "1")
    own = OwnState(1, {"page": 2})
    await storage.write_unit(job_id, attempt, "unit:1", '{"status":"done"}', "unit 1", ("state\t1", own))
    await storage.write_intent(job_id, attempt, JobState.RUNNING, "effect:letter", '{"status":"begun"}')
    await storage.forget_intent(job_id, attempt, "effect:letter")
    await storage.write_own_state(job_id, attempt, "state\tend", own)
    await jobs.units.reset(job_id, "unit:1")
    await jobs.signal(job_id, "approved")
    (entry,) = await jobs.storage.signals(job_id)
    await jobs.storage.take_signal(job_id, attempt, entry, "wait", "{}")
    await jobs.storage.count_loss(await jobs.find(job_id), "lost")
    await storage.end_iteration(begun, attempt, "ended")
    await storage.end_attempt(job_id, attempt)
    await jobs.stop(job_id, Actor.ADMIN)
    await jobs.storage.drop_ended()
    limits = json.dumps([["kind:hunt", 1]])
    for job in ("university/hunt.1", "university/hunt.2"):
        await stack.store.run("take_slots", 0, job, f"attempt at {job}", f"task of {job}", 1000, limits)
    await stack.store.run("extend_slots", 0, 1000, "university/hunt.1", "attempt at university/hunt.1")
    await stack.store.run("release_slots", 0, "university/hunt.1", "attempt at university/hunt.1", 1000)
    for _ in range(2):
        await stack.store.run("take_turn", 0, "limit:shop", "university/hunt.1", 1, 1000)
    await stack.store.run("refuse_calls", 0, "limit:shop", 1000)


async def _import_and_link(stack: Stack) -> None:
    """Import a file, give up another; mail a code, link a contact with another, withdraw the third."""
    directory, outbox = Directory(stack.store), Outbox()
    importing, linking = Importing(stack.store, directory), Linking(stack.store, directory, LinkCodeMailer(outbox))
    await importing.run(TENANT, FileKind.USERS, BytesIO(b"id,email\n5,five@example.org\n6,six@example.org\n"))
    for address in ("f1", "f2"):
        await linking.request(TENANT, "echo", address, "five@example.org")
    await linking.confirm(TENANT, "echo", "f2", outbox.codes[-1])
    outbox.is_down = True
    with suppress(NotMailed):
        await linking.request(TENANT, "echo", "f3", "five@example.org")
    outbox.is_down = False
    sign_in = SignInCodes(stack.store, directory, LinkCodeMailer(outbox))
    requested = await sign_in.request(TENANT, "five@example.org")
    await sign_in.close()
    await sign_in.confirm(requested.id, outbox.codes[-1])
    for ends in (Journal.abort, Journal.commit):
        journal = Journal(stack.store, TENANT)
        await journal.begin("members", 1)
        await journal.add([("join_group", "A", "5")], 1)
        await ends(journal)
    await roll_forward(stack.store, TENANT)


async def _call_answer_verbs(stack: Stack) -> None:
    option = Option("yes", "Yes")
    question = Question(AnswerKind.CONFIRM, [option], "en")
    accepted = await stack.deliver(person(1), question=question)
    answers = Answers(stack.store)
    questions = OpenQuestions(stack.store)
    await answers.enter(accepted.key, TENANT, "1", "yes", "anna", "event")
    await questions.remind(accepted.key, TENANT)
    shown = AnsweredMessage("echo", 0, 1)
    await AnswerNumbers(stack.store).reserve(TENANT, "echo", "p1", accepted.key, question, 0, shown)
    await questions.ask_next(accepted.key, TENANT)
    await stack.store.run("free_place", accepted.key.shard, accepted.key.suffix, "i1", 0)
    await questions.close(accepted.key, TENANT)
    await questions.reopen(accepted.key, TENANT)
    received = ReceivedMessage("5", accepted.key, 0)
    await ReceivedMessages(stack.store).note(TENANT, "echo", [("p1", received)])
    await ReceivedMessages(stack.store).quoted(TENANT, "echo", "p1", "5")
    await ReceivedMessages(stack.store).forget(TENANT, "echo", "p1")
    await stack.store.run("keep_id", accepted.key.shard, "echo", "account", "name", "5", "")
    await stack.store.run("note_mailed", accepted.key.shard, "code", accepted.key.suffix)
    await stack.store.run("count_refused_reply", accepted.key.shard, accepted.key.suffix, 0)
    threads, way = Threads(stack.store), ReplyRoute("echo", "p1")
    message = ThreadMessage(0, "person", 0, 1, "Hello")
    added = await threads.add_of_person(TENANT, Inbox("user", "7"), Correspondent(1), way, "", "event", message)
    await threads.mark_read(await threads.find(TENANT, added.thread), 1)
    await threads.mark(await threads.find(TENANT, added.thread), "mute")
    await threads.merge(TENANT, 2, 1)
    office = await threads.add_of_person(TENANT, Inbox("office", "a"), Correspondent(1), way, "", "event", message)
    await threads.claim_answer(await threads.find(TENANT, office.thread), 7)
    await threads.forget(TENANT, 1)
    await threads.add_of_person(TENANT, Inbox("user", "7"), Correspondent(2), way, "", "later", message)


async def report_token(stack: Stack, key: HistoryKey, channel: str = "echo", index: int = 0, parcel: int = 0) -> str:
    """Return the delivery report token of an entry."""
    return await DeliveryReports(stack.store).token(
        key, channel, parcel, await entry_of(stack, key, channel, index, parcel)
    )


async def entry_of(stack: Stack, key: HistoryKey, channel: str, index: int, parcel: int) -> Entry:
    text = await stack.store.command("HGET", str(key), f"parcel:{channel}:{parcel}")
    return load_parcel(text)[1][index]


async def _call_webhook_verbs(stack: Stack) -> None:
    async with WebhookClient(allow_private=True) as client:
        webhooks = Webhooks(stack.store, stack.queue, client)
        webhook, deleted = [
            await webhooks.create(TENANT, f"http://127.0.0.1:9/{number}", [EventType.FINISHED]) for number in range(2)
        ]
        reader = EventReader(stack.store, 0, stack.queue, webhooks, ReadingLimits())
        await reader.step()
        await webhooks.record(webhook, AttemptRecord("msg_1", "finished", 1, 0, 0, 200))
        await webhooks.replay(TENANT, webhook.id)
        await webhooks.delete(TENANT, deleted.id)


async def _call_sign_in_verbs(stack: Stack) -> None:
    services = {"vacancies": Service("https://a.example", "https://t.example", "ada")}
    vault = Vault([new_key()])
    tokens = Tokens(stack.store, vault, services)
    sign_in = SignIn(stack.store, vault, tokens, services, "https://ada.example")
    address = await sign_in.begin(TENANT, "vacancies", "1")
    await sign_in.confirm(address.rpartition("/")[2], "browser")
    await tokens.write(TENANT, "vacancies", "1", {"access_token": "x"})
    await forget(stack.store, TENANT, "1")
    await tokens.write(TENANT, "vacancies", "2", {"access_token": "x"})


async def _call_action_verbs(stack: Stack) -> None:
    """Store what actions of scenarios store."""
    people = People(stack.store, TENANT)
    await people.met({"channel": "echo", "user_id": 1, "chat_id": 1, "username": "anna"})
    await people.set_state("echo", "1", "feedback", HOUR)
    change = Change("person", "visits", "add", 1, 0, 0)
    await Variables(stack.store, TENANT).change("run:0", {"channel": "echo", "user_id": 1}, [change])
    await Forms(stack.store).note(TENANT, "signup", "echo:1", {"room": FormAnswer(1, "12", 1)})
    await Forms(stack.store).delete(TENANT, "signup", "echo:1", "none", "run:1")
    await stack.store.run("forget_forms", 0, TENANT, "echo", "1")
    await Requests(stack.store, TENANT).store("run:request", NewRequest("feedback", "echo", "1"))
    await stack.store.run("forget_requests", 0, TENANT, "echo", "1", 0)
    await stack.store.run("forget_person", 0, TENANT, "echo", "1")
    promos = Promos(stack.store, TENANT)
    autumn = await promos.store(Promo("AUTUMN", "autumn", "", 0, 1, "run:2"))
    await promos.change(autumn, replace(autumn, code="WINTER"))
    await stack.store.run("remember_step", 0, TENANT, "run:3", "https://t.me/+1", 1000)
