"""What is reported of jobs to users and webhooks: each notice once, over the channels of the user, in the user's
language."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core.directory import Directory
from core.jobs import Actor, JobId, JobState, StoredJob
from core.jobs.notices import Notice, NoticeEvent
from core.model.people import User, UserChange
from core.queue import QueueClient
from core.services import Services
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType
from jobs import Finished, Iteration, JobWorker, Pause, UnitFailed
from jobs.external_services import Outside
from jobs.notices import Notifier, text_of
from providers.sign_in import Service, SignIn, Tokens, Vault
from providers.sign_in.stored import new_key
from tests.core.webhooks.conftest import Installation
from tests.core.webhooks.receiver import Receiver
from tests.jobs.conftest import ANNA, HOUR, Playground, Run
from tests.support.serving import serving
from tests.support.stack import FakeCourier
from tests.support.waiting import until

UNKNOWN = JobId("university", "hunt", "echo:100001")
SERVICES = {"vacancies": Service("https://a.example", "https://t.example", "ada")}


class Scene:
    """Jobs, and a courier that keeps what users are sent. Anna is in the directory and reads English."""

    def __init__(self, playground: Playground, courier: FakeCourier) -> None:
        self.playground = playground
        self.courier = courier
        store, vault = playground.stack.store, Vault([new_key()])
        self.sign_in = SignIn(store, vault, Tokens(store, vault, SERVICES), SERVICES, "https://ada.example")

    async def run(self, run: Run, job_id: JobId = ANNA) -> None:
        """Start a job that does this."""
        self.playground.run, self.playground.most_failures = run, 1
        self.start_worker()
        await self.playground.jobs.start(job_id)

    def start_worker(self) -> None:
        store = self.playground.stack.store
        outside, notifier = Outside(store, self.sign_in.tokens), Notifier(Services.on(store), sign_in=self.sign_in)
        client, registry = QueueClient(store), self.playground.registry
        self.playground.run_worker(JobWorker(store, client, registry, outside=outside, notifier=notifier))

    async def texts(self, count: int = 1) -> list[str]:
        """The messages, as soon as there are so many."""
        await until(lambda: len(self.courier.attempted) >= count)
        return [message.text for message in self.courier.attempted]

    async def speaks(self, language: str) -> None:
        """Set the language of the user."""
        await Directory(self.playground.stack.store).users.update("university", 1, UserChange(locale=language))

    async def nobody_waits(self) -> None:
        """Wait until every notice was handled."""

        async def is_empty() -> bool:
            states = await self.playground.stack.redis.hgetall("queue:{0}:states")
            live = ("waiting", "ready", "taken", "locked")
            return not any(int(states.get(f"job-notices:{state}", 0)) for state in live)

        await until(is_empty)


@pytest.fixture
async def scene(playground: Playground) -> Scene:
    courier = FakeCourier()
    await playground.stack.courier(courier)
    anna = User(1, "Anna", locale="en", contacts={"echo": ["anna"], "nobody": ["x"]})
    await Directory(playground.stack.store).users.create("university", anna)
    return Scene(playground, courier)


async def fail(iteration: Iteration) -> None:
    raise UnitFailed("the service is closed")


async def test_a_user_is_told_that_its_job_has_failed(scene: Scene) -> None:
    async def stumble(iteration: Iteration) -> None:
        raise KeyError("secret")

    await scene.speaks("ru")
    await scene.run(stumble)
    (text,) = await scene.texts()
    assert re.fullmatch(r"Ваше задание hunt прервано из-за ошибки: KeyError, файл conftest\.py, строка \d+", text)
    assert scene.courier.addresses == ["anna"]


@pytest.mark.parametrize("period", [HOUR, timedelta(seconds=1)])
async def test_a_user_is_told_that_its_job_keeps_failing(scene: Scene, period: timedelta) -> None:
    """In the step that tries again, and in the one that gives the iteration up."""
    playground = scene.playground
    playground.run, playground.most_failures, playground.period = fail, 100, period
    job = await playground.jobs.start(ANNA)
    since_a_day = replace(job.record, failures=10, report_at=1)
    await playground.jobs.storage.save(StoredJob(ANNA, since_a_day, job.version), puts_task=False)
    scene.start_worker()
    text = "Your job hunt has failed again and again for a day. It goes on trying: the service is closed"
    assert await scene.texts() == [text]
    record = (await playground.jobs.find(ANNA)).record
    assert (record.state, record.report_at) == (JobState.RUNNING, 0)


async def test_a_user_is_told_that_its_job_has_finished(scene: Scene) -> None:
    async def finish(iteration: Iteration) -> None:
        raise Finished("hired")

    await scene.run(finish)
    assert await scene.texts() == ["Your job hunt has finished. hired"]
    assert (await scene.playground.jobs.find(ANNA)).record.state is JobState.FINISHED


async def test_a_user_is_told_where_to_sign_in(scene: Scene) -> None:
    async def apply(iteration: Iteration) -> None:
        await iteration.access_token("vacancies")

    await scene.speaks("ru")
    await scene.run(apply)
    (text,) = await scene.texts()
    waits = "Ваше задание hunt ждёт вас: войдите в vacancies ещё раз\n"
    assert text.startswith(f"{waits}Войдите здесь в течение дня: https")
    invitation = await scene.sign_in.find(text.rpartition("/")[2])
    assert (invitation.signed_in.user, invitation.person) == ("1", "Anna")
    assert (await scene.playground.jobs.find(ANNA)).record.service == "vacancies"


async def test_a_user_is_told_of_a_limit_once_a_day(scene: Scene) -> None:
    async def reach(iteration: Iteration) -> None:
        raise Pause(Actor.LIMIT, "200 applications a day", scene.playground.jobs.now() + 2 * HOUR)

    await scene.run(reach)
    (text,) = await scene.texts()
    assert text.startswith("Your job hunt is paused until ")
    assert text.endswith(": 200 applications a day")
    await scene.playground.jobs.resume(ANNA, Actor.USER)
    await scene.playground.in_state(JobState.PAUSED)
    await scene.nobody_waits()
    assert len(await scene.texts()) == 1


async def test_a_user_is_not_told_of_a_limit_that_ends_soon_or_of_what_people_do(scene: Scene) -> None:
    async def wait(iteration: Iteration) -> None:
        raise Pause(Actor.LIMIT, "busy", scene.playground.jobs.now() + timedelta(minutes=5))

    await scene.run(wait)
    await scene.playground.in_state(JobState.PAUSED)
    for by in (Actor.USER, Actor.ADMIN):
        await scene.playground.jobs.pause(ANNA, by, "holiday")
    await scene.playground.jobs.stop(ANNA, Actor.ADMIN)
    await scene.nobody_waits()
    assert scene.courier.attempted == []


async def test_a_user_is_told_that_its_job_waits_for_a_choice(scene: Scene) -> None:
    async def choose(iteration: Iteration) -> None:
        raise Pause(Actor.USER, "choose one of your profiles")

    await scene.run(choose)
    assert await scene.texts() == ["Your job hunt waits for you: choose one of your profiles"]


async def test_a_user_that_the_directory_does_not_know_is_told_in_its_chat(scene: Scene) -> None:
    await scene.run(fail, UNKNOWN)
    assert await scene.texts() == ["Ваше задание hunt прервано из-за ошибки: the service is closed"]
    assert scene.courier.addresses == ["100001"]


async def test_nobody_is_told_of_the_job_of_a_user_without_contacts(scene: Scene) -> None:
    await scene.run(fail, JobId("university", "hunt", "7"))
    await scene.playground.in_state(JobState.FAILED, JobId("university", "hunt", "7"))
    await scene.nobody_waits()
    assert scene.courier.attempted == []


@pytest.mark.parametrize("job", [ANNA, JobId("university", "hunt", "echo:anna")])
@pytest.mark.parametrize("wish", [UserChange(blocked=True), UserChange(opt_out=("echo",))])
async def test_a_user_that_is_blocked_or_has_opted_out_is_not_told(scene: Scene, job: JobId, wish: UserChange) -> None:
    await Directory(scene.playground.stack.store).users.update("university", 1, wish)
    await scene.run(fail, job)
    await scene.playground.in_state(JobState.FAILED, job)
    await scene.nobody_waits()
    assert await scene.playground.stack.redis.keys("history:*") == []


async def test_a_notice_is_sent_once_though_the_process_is_killed_before_it(scene: Scene) -> None:
    """The change of the job and the notice are one step; whichever process runs next sends it."""
    await scene.playground.jobs.start(ANNA)
    await scene.playground.jobs.fail(ANNA, "broken")
    for _ in range(2):
        scene.start_worker()
    assert await scene.texts() == ["Your job hunt has failed and does not go on: broken"]
    await scene.nobody_waits()
    assert len(scene.courier.attempted) == 1


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with serving(Receiver()) as receiver:
        yield receiver


async def test_webhooks_that_want_it_are_told_of_jobs_of_their_tenant(scene: Scene, receiver: Receiver) -> None:
    store, stack = scene.playground.stack.store, scene.playground.stack
    client = WebhookClient(allow_private=True)
    webhooks = Installation(stack, client, Webhooks(store, stack.queue, client))
    await webhooks.add(receiver, [EventType.JOB])
    await webhooks.add(receiver, [EventType.JOB], tenant="another")
    await webhooks.add(receiver, [EventType.FINISHED])
    webhooks.start()
    await scene.run(fail)
    await until(lambda: bool(receiver.of_type("job")))
    await scene.nobody_waits()
    (call,) = receiver.of_type("job")
    data = json.loads(call.body)["data"]
    assert data == {
        "job": "hunt.1",
        "kind": "hunt",
        "user": "1",
        "event": "failed",
        "version": 3,
        "reason": "the service is closed",
    }
    await webhooks.stop()
    await client.close()


@pytest.mark.parametrize("event", [event for event in NoticeEvent if event is not NoticeEvent.ENDED])
def test_every_event_has_a_text_in_both_languages(event: NoticeEvent) -> None:
    notice = Notice(event, "university", "hunt", "1", 1, 0, "why", 86_400_000, timezone="Europe/Moscow")
    english, russian = (text_of(notice, locale, "https://ada.example") for locale in ("en-GB", "ru"))
    assert english.startswith("Your job hunt ")
    assert russian.startswith("Ваше задание hunt ")
    assert all("why" in text for text in (english, russian))
    assert text_of(notice, "de") == text_of(notice, "ru")
    is_sign_in = event is NoticeEvent.SIGN_IN_NEEDED
    assert ("Sign in here, within a day: https://ada.example" in english) is is_sign_in
    assert "Sign in here" not in text_of(notice, "en")
    assert ("until 02.01.1970 03:00: " in english) is (event is NoticeEvent.LIMIT_REACHED)


async def test_a_sign_in_to_another_service_resumes_nothing(playground: Playground) -> None:
    await playground.jobs.start(ANNA)
    await playground.jobs.pause(ANNA, Actor.SIGN_IN, "sign in again", service="vacancies")
    assert not await playground.jobs.waits_for_sign_in(ANNA.tenant, ANNA.user, "calendar")
    await playground.jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "calendar")
    assert (await playground.jobs.find(ANNA)).record.state is JobState.PAUSED
    await playground.jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    resumed = await playground.jobs.find(ANNA)
    assert (resumed.record.state, resumed.record.service) == (JobState.RUNNING, "")
