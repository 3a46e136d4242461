"""Makes the delivery of an order: who receives it, when, and the quota that its sender is held to.

Nothing is written here but the lifetime of uploaded files, so a refusal leaves no trace. A file lives until the
deliveries that name it have ended.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from core.admission.quotas import Quotas
from core.deliveries.channels import Channels
from core.directory import Directory
from core.directory.offices import OfficeState, state_of_office
from core.errors import Conflict, Forbidden, Invalid
from core.model.clock import from_ms
from core.model.content import Attachment, Content
from core.model.delivery import REPLIES_OFF, REPLIES_TO_SENDER, Bound, NewDelivery, Recipient, Sender, Strategy
from core.model.hours import is_once_a_day, next_opening
from core.orders.addressing import Addressing
from core.orders.check import check, refuse
from core.orders.follow_ups import FollowedPeople, FollowUps
from core.orders.order import Caller, Order
from core.orders.personal_values import as_typed, check_files, make_personal
from core.orders.question_rules import check_guardians, check_people, check_question, with_escalation
from core.orders.recipient_tables import RowAddressees
from core.orders.sending_policy import TRIAL, SendingPolicy, in_own_name, is_trial
from core.uploads import KEPT, Upload, Uploads

MAX_RECIPIENTS = 10_000


class AttachedUploads:
    """One per process."""

    def __init__(self, uploads: Uploads, clock: Callable[[], datetime]) -> None:
        self._uploads = uploads
        self._clock = clock

    async def keep(self, tenant: str, content: Content, due: datetime | None) -> Content:
        """Return the content of a new delivery with the names of its files. Raises Invalid FILE_NOT_FOUND."""
        found = dict(await self._kept(tenant, content, due))
        for number, one in enumerate(content.attachments):
            if one.file and found[one.file] is None:
                detail = f"There is no file {one.file}: it was never uploaded, was deleted or has expired."
                raise Invalid("FILE_NOT_FOUND", detail, f"content.attachments.{number}.file")
        named = [_named(one, found.get(one.file)) for one in content.attachments]
        return replace(content, attachments=named) if found else content

    async def keep_again(self, tenant: str, content: Content, due: datetime | None) -> None:
        """Keep the files of a delivery for longer. Raises Conflict FILE_GONE for a delivery that is moved or retried
        without one of its files.
        """
        names = {one.file: one.name for one in content.attachments}
        for file, upload in await self._kept(tenant, content, due):
            if upload is None:
                raise Conflict("FILE_GONE", f"The file {names[file]} was deleted or has expired; send it anew.")

    async def _kept(self, tenant: str, content: Content, due: datetime | None) -> Sequence[tuple[str, Upload | None]]:
        """Return the files that are named, each None if it is not there."""
        if not (files := files_in(content)):
            return []
        now = self._clock()
        return list(zip(files, await self._uploads.keep(tenant, files, max(due or now, now) + KEPT), strict=True))


def files_in(content: Content) -> Sequence[str]:
    """Return the ids of the uploaded files of a content, each once."""
    return list(dict.fromkeys(one.file for one in content.attachments if one.file))


def _named(attachment: Attachment, upload: Upload | None) -> Attachment:
    return replace(attachment, name=upload.name) if upload else attachment


def _bound(caller: Caller, role: str | None) -> Bound | None:
    if caller.person:
        return Bound.PEOPLE
    return None if role is None or caller.is_admin else Bound.GROUPS


class PreparedOrder(NamedTuple):
    """A delivery that can be stored. `mentions`: its people as they were found, a person perhaps more than once.
    `followed`: None unless it is a follow-up.
    """

    delivery: NewDelivery
    mentions: Sequence[Recipient]
    followed: FollowedPeople | None = None

    @property
    def repeated(self) -> int:
        """Return how many people are addressed more than once: by their id, in several groups that are no virtual ones,
        or by a bare address beside it.
        """
        counts, people = Counter(str(one.id) for one in self.mentions), self.delivery.recipients
        return sum(counts[str(one.id)] > 1 or len(one.origin) > 1 for one in people) + len(counts) - len(people)


class Preparation:
    """One per process."""

    def __init__(
        self,
        directory: Directory,
        channels: Channels,
        quotas: Quotas,
        policy: SendingPolicy,
        max_recipients: int,
        clock: Callable[[], datetime],
        files: AttachedUploads,
        rows: RowAddressees,
        follow_ups: FollowUps,
    ) -> None:
        self._directory = directory
        self._channels = channels
        self._addressing = Addressing(directory, max_recipients, policy.staff_writes_to_all)
        self._quotas = quotas
        self._policy = policy
        self._clock = clock
        self._files = files
        self._rows = rows
        self._follow_ups = follow_ups

    async def prepare(self, order: Order, caller: Caller) -> PreparedOrder:
        """Return the delivery with its recipients, its time and its quota. Raises the refusals of `Sending.send`."""
        channels = (await self._channels.current()).names
        named = await self._addressing.by_own_ids(caller.tenant, order.addressees, channels)
        if named is not order.addressees:
            order = replace(order, addressees=named)
        refuse(check(order, channels, self._clock()))
        followed = await self._follow_ups.people(order, caller)
        addressees = followed.addressees if followed else await self._rows.expanded(order.addressees, caller)
        given = order.delivery
        if caller.person:
            open_to_staff = self._policy.staff_writes_to_all
            given = await in_own_name(self._directory, caller.tenant, caller.person, given, addressees, open_to_staff)
        deliver_at, moved_from = self._times(order, given, caller)
        role = await self._role(given.sender, caller)
        sender = given.sender.id
        about = sender, role, order.audience, given.language
        mentions, uninformed = await self._addressing.mentions(caller.tenant, addressees, *about)
        recipients = self._recipients(order, given, mentions, deliver_at)
        replies, empty_office = await self._replies(given, caller)
        content = await self._files.keep(caller.tenant, given.content, deliver_at) if given.content else None
        delivery = replace(
            given,
            content=content,
            tenant=caller.tenant,
            recipients=recipients,
            channels=with_escalation(given.channels or await self._in_order(channels, given.strategy), given.question),
            deliver_at=deliver_at,
            moved_from=moved_from,
            replies=replies,
            uninformed=uninformed,
            unfilled=order.unfilled,
            empty_office=empty_office,
            bound=_bound(caller, role),
            quota=None if is_trial(given, addressees, caller.person) else self._quotas.of_role(role),
        )
        is_personal = order.is_personal
        if is_personal:
            check_files(content)
        if is_personal or delivery.texts:
            titles = await self._titles_of_groups(delivery) if is_personal else {}
            delivery = make_personal(delivery if is_personal else as_typed(delivery), titles)
        return PreparedOrder(followed.linked(delivery) if followed else delivery, mentions, followed)

    async def _titles_of_groups(self, delivery: NewDelivery) -> Mapping[str, str]:
        """Return id → title of the groups through which people are addressed, of those that have one."""
        ids = list({group for one in delivery.recipients for group in one.origin})
        found = await self._directory.groups.lookup(delivery.tenant, ids) if ids else []
        return {name: one.title for name, one in zip(ids, found, strict=True) if one and one.title}

    def _times(self, order: Order, given: NewDelivery, caller: Caller) -> tuple[datetime | None, datetime | None]:
        """Return when to deliver, and the requested time if it was moved. Raises Invalid for a question or a delivery
        that would be over by then.
        """
        deliver_at, moved_from = self.moved(given.deliver_at, caller, is_urgent=order.urgent)
        if given.question:
            check_question(given.question, deliver_at, self._clock())
        if moved_from and deliver_at and given.expires_at and given.expires_at <= deliver_at:
            detail = f"Quiet hours move the delivery to {deliver_at:%FT%TZ}; it would have expired then."
            raise Invalid("EXPIRES_BEFORE_DUE", detail, "expires_at")
        return deliver_at, moved_from

    def _recipients(
        self, order: Order, given: NewDelivery, mentions: Sequence[Recipient], deliver_at: datetime | None
    ) -> Sequence[Recipient]:
        """Return each person once, without the hours that a message cannot wait for."""
        recipients = [
            replace(one, hours="")
            if one.hours and (order.urgent or self._closes_before_hour(given, one.hours, deliver_at))
            else one
            for one in self._addressing.each_once(mentions)
        ]
        check_people(given.question, len(recipients))
        if given.question and any(one.children for one in recipients):
            check_guardians(given.question, recipients)
        return recipients

    def _closes_before_hour(self, given: NewDelivery, hours: str, deliver_at: datetime | None) -> bool:
        """Return whether a question would be closed when it reaches a person who wants one message a day."""
        if not (given.question and given.question.until and is_once_a_day(hours)):
            return False
        now = self._clock()
        opens = next_opening(hours, max(deliver_at or now, now), now)
        return opens is not None and from_ms(given.question.until) <= opens

    async def _replies(self, given: NewDelivery, caller: Caller) -> tuple[str, bool]:
        """Return where replies go: to a person who sends, unless the order says otherwise; and whether that is an
        office without members. Raises Invalid OFFICE_NOT_FOUND.
        """
        if not given.replies:
            return (REPLIES_TO_SENDER if caller.person and given.kind != TRIAL else ""), False
        if given.replies in (REPLIES_TO_SENDER, REPLIES_OFF):
            return given.replies, False
        state = await state_of_office(self._directory, caller.tenant, given.replies)
        if state is OfficeState.NO_GROUP:
            raise Invalid(
                "OFFICE_NOT_FOUND", f"There is no group {given.replies!r} that could be an office.", "replies"
            )
        if state is OfficeState.NO_READERS:
            detail = f"Nobody reads the office {given.replies!r}: no member of it is trainer, staff or admin."
            raise Invalid("OFFICE_NOT_FOUND", detail, "replies")
        return given.replies, state is OfficeState.NO_MEMBERS

    async def _in_order(self, channels: Sequence[str], strategy: Strategy) -> Sequence[str]:
        """Return the channels of a delivery that names none: if it goes to the first one that works, those paid
        for each message come last.
        """
        if strategy is not Strategy.FIRST:
            return channels
        paid = {one.name for one in await self._channels.views() if one.display and one.display.limits.in_sms}
        return sorted(channels, key=lambda name: name in paid)

    async def _role(self, sender: Sender, caller: Caller) -> str | None:
        """Return the role to which a sender is held: the directory's if it knows one and the key is not an
        administrator's, else that of the request.
        """
        if caller.is_admin:
            return sender.role
        (user,) = await self._directory.users.lookup(caller.tenant, [sender.id])
        if user and user.blocked:
            raise Forbidden("SENDER_BLOCKED", "The sender is blocked.", "sender.id")
        return (user.role if user else None) or sender.role

    def moved(
        self, requested: datetime | None, caller: Caller, *, is_urgent: bool
    ) -> tuple[datetime | None, datetime | None]:
        """Return when to deliver, and the requested time (that of the call if None) if quiet hours have moved it.

        Raises Forbidden URGENT_NOT_ALLOWED.
        """
        if is_urgent and not caller.may_be_urgent:
            raise Forbidden("URGENT_NOT_ALLOWED", "This needs an API key with the scope urgent.", "urgent")
        quiet_hours = None if is_urgent else self._policy.quiet_hours.of(caller.tenant)
        if quiet_hours is None:
            return requested, None
        now = self._clock()
        moved = quiet_hours.moved(max(requested or now, now))
        return (moved, requested or now) if moved else (requested, None)
