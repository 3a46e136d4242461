"""Reports to users and webhooks what has happened to jobs by itself: a failure, failures for a day, a sign-in that is
needed, a limit, the end.

    the step that changes the job ─▶ tube `job-notices` ─▶ Notifier ─▶ Sending (the user's channels) · webhooks

Guarantees: a notice is in the same step as the change, so no crash loses it; the user gets one message, however often
the task is repeated; of the same limit one in a day, and none if it ends within an hour.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import msgspec

from core.errors import Refused
from core.jobs import Actor, JobId, Jobs
from core.jobs.notices import Notice, NoticeEvent
from core.jobs.record import zone_of
from core.model.clock import from_ms
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.people import User
from core.orders import Caller, Order
from core.queue import Attempt, Result
from core.sentence import in_language, language_of, say
from core.services import Services
from core.webhooks.event_reader import put_message
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType
from jobs.recording.waiting import ChildEnd
from providers.sign_in import SignIn

log = logging.getLogger(__name__)


KIND = "job-notice"
"""The kind of the deliveries."""

_SENDER = Sender("jobs")
_DAY = LINK_LIFETIME = timedelta(days=1)
"""A notice is for a day, and the address to sign in that it has is valid for a day."""
_SHORT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Person:
    """The person that a notice is for: `channels` in their order, `locale` as the directory has it."""

    recipient: Recipient
    locale: str | None = None

    @property
    def channels(self) -> list[str]:
        return list(self.recipient.contacts)


class Notifier:
    """The handler of the tube `job-notices`. `sign_in`: None without ADA_SIGN_IN."""

    def __init__(self, core: Services, sign_in: SignIn | None = None) -> None:
        self._core = core
        self._webhooks = Webhooks(core.store, core.queue, WebhookClient(allow_private=False))
        self._sign_in = sign_in

    async def handle(self, attempt: Attempt) -> Result:
        """Return one notice. An error of the store is tried again by the queue; a refusal is a line in the log."""
        notice = Notice.decode(attempt.body)
        await notify_family(Jobs(self._core.store), notice)
        if notice.event is NoticeEvent.ENDED:
            return None
        await self._notify_webhooks(notice)
        if notice.event is NoticeEvent.LIMIT_REACHED and _ends_soon(notice):
            return None
        person = await self._person(notice)
        if person is None:
            log.info("job %s: no user can be notified that it is %s", notice.job, notice.event)
            return None
        try:
            await self._send(notice, person)
        except Refused as refusal:
            log.warning("job %s: its user was not notified that it is %s: %s", notice.job, notice.event, refusal.code)
        return None

    async def _notify_webhooks(self, notice: Notice) -> None:
        name = f"{notice.tenant}/{notice.job} {notice.version}"
        await put_message(
            self._webhooks, self._core.queue, notice.tenant, EventType.JOB, name, from_ms(notice.at), _data_of(notice)
        )

    async def _person(self, notice: Notice) -> _Person | None:
        """Return the person of a notice; None if the user has no contact. A user that the directory does not know is
        CHANNEL:ADDRESS.
        """
        known = set((await self._core.channels.current()).names)
        (user,) = await self._core.directory.users.lookup(notice.tenant, [notice.user])
        if user:
            return _person_of(user, known)
        channel, _, address = notice.user.partition(":")
        owner = await self._core.directory.users.by_contact(notice.tenant, channel, address)
        if channel not in known or not address or (owner and not owner.accepts(channel)):
            return None
        return _Person(Recipient(address, contacts={channel: [address]}))

    async def _send(self, notice: Notice, person: _Person) -> None:
        address = await self._address(notice, person)
        delivery = NewDelivery(
            tenant=notice.tenant,
            sender=_SENDER,
            text=text_of(notice, person.locale, address),
            recipients=(),
            channels=person.channels,
            origin="jobs",
            expires_at=datetime.now(UTC) + _DAY,
            kind=KIND,
            strategy=Strategy.FIRST,
        )
        caller = Caller(notice.tenant, is_admin=True)
        await self._core.sending.send(Order(delivery, [person.recipient]), caller, _repeat_of(notice))

    async def _address(self, notice: Notice, person: _Person) -> str:
        """Return where the user signs in; "" if that is not needed, or the service is not known."""
        if notice.event is not NoticeEvent.SIGN_IN_NEEDED or self._sign_in is None or not notice.service:
            return ""
        try:
            name = person.recipient.name or ""
            return await self._sign_in.begin(notice.tenant, notice.service, notice.user, name, LINK_LIFETIME)
        except Refused:
            return ""


def _person_of(user: User, known: set[str]) -> _Person | None:
    contacts = {
        channel: addresses
        for channel, addresses in user.contacts.items()
        if addresses and channel in known and user.accepts(channel)
    }
    return _Person(Recipient(user.id, user.name, contacts=contacts), user.locale) if contacts else None


def _repeat_of(notice: Notice) -> Repeat:
    """Return what a message has in common with its repeat: the change of the job; for a limit its reason and the
    day."""
    what = str(notice.version)
    if notice.event is NoticeEvent.LIMIT_REACHED:
        day = from_ms(notice.at).astimezone(zone_of(notice.timezone)).date()
        what = f"{day} {notice.reason}"
    digest = blake2b(f"{notice.tenant}/{notice.job} {what}".encode(), digest_size=16).hexdigest()
    return Repeat(f"job-notice.{digest}", notice.event)


def _ends_soon(notice: Notice) -> bool:
    pause = timedelta(milliseconds=notice.resumes_at - notice.at)
    return notice.resumes_at > 0 and pause <= _SHORT


class _Data(msgspec.Struct, omit_defaults=True):
    """The data of a webhook's message."""

    job: str
    kind: str
    user: str
    event: NoticeEvent
    version: int
    reason: str
    resumes_at: datetime | None = None
    service: str = ""


def _data_of(notice: Notice) -> _Data:
    resumes_at = from_ms(notice.resumes_at) if notice.resumes_at else None
    facts = (notice.job, notice.kind, notice.user, notice.event, notice.version, notice.reason)
    return _Data(*facts, resumes_at, notice.service)


def text_of(notice: Notice, locale: str | None, address: str = "") -> str:
    """Return the message for a person. `address`: where the user signs in, "" if it is not known."""
    until = from_ms(notice.resumes_at).astimezone(zone_of(notice.timezone)) if notice.resumes_at else None
    why = in_language(notice.said or notice.reason, language_of(locale))
    values = {"kind": notice.kind, "reason": why, "until": f"{until:%d.%m.%Y %H:%M}" if until else "–"}
    text = say(f"job_{notice.event}", locale, **values).strip()
    if notice.event is NoticeEvent.SIGN_IN_NEEDED and address:
        text += "\n" + say("job_sign_in_address", locale, address=address)
    return text


async def notify_family(jobs: Jobs, notice: Notice) -> None:
    """Send the parent the signal for which it waits, and stop the children. A repetition does nothing."""
    if notice.parent:
        parent = JobId.parse(notice.tenant, notice.parent.job)
        end = msgspec.json.decode(msgspec.json.encode(ChildEnd(notice.end, notice.reason, notice.result)))
        signal = notice.parent.signal_of(notice.job_id)
        # The versions of a child that was dropped and started again begin anew.
        signal_id = f"{notice.job} {notice.parent.iteration} {notice.version}"
        try:
            await jobs.signal(parent, signal, end, signal_id=signal_id, log=f"the child {notice.job} is {notice.end}")
        except Refused as refusal:
            log.info("job %s: its parent %s gets no signal: %s", notice.job, parent.name, refusal.code)
    for name in notice.children:
        try:
            await jobs.stop(
                JobId.parse(notice.tenant, name), Actor.ADMIN, f"its parent is {notice.end}", keeps_failed=True
            )
        except Refused as refusal:
            log.info("job %s: its child %s is not stopped: %s", notice.job, name, refusal.code)
