"""Sends orders: addressees become recipients, the rules are applied, the delivery is stored.

    order → preparation (people, role, quiet hours) → Deliveries.enqueue (quota, in the same step)

Called by `delivery/` and `scenarios/`.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from core.admission.idempotency import Idempotency
from core.admission.quotas import Quotas
from core.answers.current_people import CurrentPeople
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.directory.name_search import has_name
from core.errors import Conflict, Refused, StoreRefuses
from core.model.delivery import NO_QUOTA, Accepted, NewDelivery, QuotaState, Repeat
from core.model.history_key import HistoryKey, Id
from core.model.hours import QuietHours
from core.model.people import User
from core.model.states import Status
from core.orders.check import check_time
from core.orders.choices import Addressees, Choice
from core.orders.follow_ups import FollowUps
from core.orders.order import Caller, Order
from core.orders.preparation import MAX_RECIPIENTS, AttachedUploads, Preparation
from core.orders.preview import Preview, preview_of
from core.orders.recipient_tables import RowAddressees, TableReader
from core.orders.sending_policy import SendingPolicy, allowed_people, writes_to_all
from core.redis.store import Store
from core.uploads import Uploads

Ordered = tuple[Order, Repeat | None]
Result = Accepted | Refused | StoreRefuses
R = TypeVar("R", bound=Result)


class Sending:
    """One per process. `clock`: the current time, aware; by default that of the store."""

    def __init__(
        self,
        store: Store,
        deliveries: Deliveries,
        directory: Directory,
        policy: SendingPolicy | None = None,
        *,
        max_recipients: int = MAX_RECIPIENTS,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        policy = policy or SendingPolicy()
        self.clock = clock = clock or store.now
        self._store = store
        self._policy = policy
        self._deliveries = deliveries
        self._directory = directory
        self._current = CurrentPeople(store)
        self._idempotency = Idempotency(store)
        self._quotas = Quotas(store, policy.quotas)
        self._files = AttachedUploads(Uploads(store), clock)
        self.tables = TableReader(Uploads(store))
        rows = RowAddressees(store, directory, self.tables)
        follow_ups = FollowUps(store, deliveries, directory, policy.staff_writes_to_all)
        self._preparation = Preparation(
            directory, deliveries.channels, self._quotas, policy, max_recipients, clock, self._files, rows, follow_ups
        )

    async def send(self, order: Order, caller: Caller, repeat: Repeat | None = None) -> Accepted:
        """Store one delivery; a repeat returns the first result. A refusal leaves no trace.

        Raises Invalid USER_NOT_FOUND, GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND, NOBODY_ADDRESSED, TOO_MANY_RECIPIENTS,
        FILE_NOT_FOUND, EXPIRES_BEFORE_DUE if quiet hours move it, what `check` finds; Forbidden
        NOT_OWNER, URGENT_NOT_ALLOWED; QuotaExceeded; what `Deliveries.enqueue` raises.
        """
        begun = await self._begin(order, caller, repeat)
        return begun if isinstance(begun, Accepted) else _naming(await self._deliveries.enqueue(begun, repeat), begun)

    async def preview(self, order: Order, caller: Caller) -> Preview:
        """Return what `send` would do now; nothing is written. Raises what `send` raises before it stores anything."""
        prepared = await self._preparation.prepare(order, caller)
        quota, sender = prepared.delivery.quota, prepared.delivery.sender.id
        state = await self._quotas.read(caller.tenant, sender, quota) if quota else None
        return preview_of(prepared, state, self.clock())

    async def send_many(self, orders: Sequence[Ordered], caller: Caller) -> list[Result]:
        """Do `send` for each order, all in one batch; the results in their order. Raises StoreError if a result is
        unknown.
        """
        # At the same time, because each preparation reads the directory.
        begun = await asyncio.gather(*(self._begin_or_refuse(one, caller) for one in orders))
        new = [(one, repeat) for one, (_, repeat) in zip(begun, orders, strict=True) if isinstance(one, NewDelivery)]
        stored = iter(await self._deliveries.enqueue_many(new) if new else ())
        return [_naming(next(stored), one) if isinstance(one, NewDelivery) else one for one in begun]

    async def _begin_or_refuse(self, ordered: Ordered, caller: Caller) -> NewDelivery | Result:
        order, repeat = ordered
        try:
            return await self._begin(order, caller, repeat)
        except Refused as refusal:
            return refusal

    async def _begin(self, order: Order, caller: Caller, repeat: Repeat | None) -> NewDelivery | Accepted:
        """Return the delivery, to be stored in one step. Return the result for one whose Idempotency-Key is bound in
        another shard first, and the first result for a repeat that would be refused by now: a group of it was deleted.
        """
        try:
            delivery = (await self._preparation.prepare(order, caller)).delivery
        except Refused:
            first = await self._deliveries.first_result(order.delivery, repeat) if repeat else None
            if first is None:
                raise
            return first
        if repeat and self._is_bound_elsewhere(delivery, repeat):
            return await self._send_bound(delivery, repeat)
        return delivery

    def _is_bound_elsewhere(self, delivery: NewDelivery, repeat: Repeat) -> bool:
        """Return whether the delivery is in another shard than its Idempotency-Key: its lane or the quota of its sender
        decides."""
        return not repeat.is_own and self._deliveries.shard_for(delivery, repeat) != self._store.shard_of(repeat.key)

    async def _send_bound(self, delivery: NewDelivery, repeat: Repeat) -> Accepted:
        """Bind the Idempotency-Key in its own shard first, so that every other operation refuses it."""
        is_new = await self._idempotency.bind(delivery.tenant, repeat.key, repeat.fingerprint)
        if not is_new:
            first = await self._deliveries.first_result(delivery, repeat)
            if first:
                return first
        try:
            return _naming(await self._deliveries.enqueue(delivery, repeat), delivery)
        except Refused:
            if is_new:
                await self._idempotency.forget(delivery.tenant, repeat.key)
            raise

    async def reschedule(
        self, key: HistoryKey, caller: Caller, deliver_at: datetime, *, urgent: bool = False, far: bool = False
    ) -> Accepted:
        """Move a delivery that has not been released. A time in quiet hours is moved to their end.

        Raises Invalid DELIVER_AT_PAST, DELIVER_AT_FAR, Forbidden URGENT_NOT_ALLOWED, Conflict FILE_GONE, and what
        `Deliveries.reschedule` raises.
        """
        check_time(deliver_at, self.clock(), is_far=far)
        moved, moved_from = self._preparation.moved(deliver_at, caller, is_urgent=urgent)
        await self._keep_files_of(key, caller.tenant, moved or deliver_at)
        return await self._deliveries.reschedule(key, caller.tenant, moved or deliver_at, moved_from)

    def check_quiet_hours(self, caller: Caller, *, urgent: bool = False) -> None:
        """Check that something may be sent again now. Raises Conflict QUIET_HOURS, Forbidden URGENT_NOT_ALLOWED."""
        moved, moved_from = self._preparation.moved(None, caller, is_urgent=urgent)
        if moved and moved_from:
            said = f"These are quiet hours; nothing is sent again before {moved:%FT%TZ}."
            raise Conflict("QUIET_HOURS", said, retry_after=moved - self.clock())

    async def retry(
        self,
        key: HistoryKey,
        caller: Caller,
        statuses: Sequence[Status],
        recipients: Sequence[str] = (),
        *,
        urgent: bool = False,
    ) -> int:
        """Queue the entries with one of these statuses again, of all recipients or the given ones; return how many. Who
        has opted out or was blocked meanwhile is left out.

        Raises Conflict QUIET_HOURS, FILE_GONE, Forbidden URGENT_NOT_ALLOWED, and what `Deliveries.retry` raises.
        """
        self.check_quiet_hours(caller, urgent=urgent)
        await self._keep_files_of(key, caller.tenant, None)
        accept = partial(self._current.accept, caller.tenant)
        return await self._deliveries.retry(key, caller.tenant, statuses, recipients, accept)

    async def _keep_files_of(self, key: HistoryKey, tenant: str, due: datetime | None) -> None:
        """Keep the files of a delivery for longer. Raises NotFound HISTORY_NOT_FOUND, Conflict FILE_GONE."""
        history = await self._deliveries.read(key, tenant, limit=1)
        if history.content:
            await self._files.keep_again(tenant, history.content, due)

    def quiet_hours(self, tenant: str) -> QuietHours | None:
        return self._policy.quiet_hours.of(tenant)

    async def find_people(self, caller: Caller, name: str, limit: int) -> Sequence[User]:
        """Return at most `limit` people that the caller may address, found by the beginnings of words of the name."""
        users, tenant = self._directory.users, caller.tenant
        if caller.person:
            allowed = await allowed_people(self._directory, tenant, caller.person, self._policy.staff_writes_to_all)
            if allowed is not None:
                found = await users.lookup(tenant, sorted(allowed))
                return [user for user in found if user and has_name(user, name)][:limit]
        return (await users.page(tenant, name=name, limit=limit)).items

    def writes_to_all(self, caller: Caller) -> bool:
        """Return whether the caller may address every person and group: a program, or a person with such a role."""
        person = caller.person
        return person is None or writes_to_all(person.role, caller.tenant, self._policy.staff_writes_to_all)

    async def groups_for(self, caller: Caller) -> Sequence[Choice]:
        """Return the groups and supergroups that the caller may address. Groups first, sorted by title."""
        owner = None if self.writes_to_all(caller) else caller.person
        return await Addressees(self._directory, caller.tenant).of(owner)

    async def quota(self, tenant: str, sender: Id, role: str | None = None) -> QuotaState:
        """Return how much of its quota a sender has used. `role`: of a sender that the directory does not know; without
        one, the quota that held for the sender's last delivery.
        """
        (user,) = await self._directory.users.lookup(tenant, [sender])
        known = (user.role if user else None) or role
        quota = self._quotas.of_role(known)
        if known and quota is None:
            return NO_QUOTA
        return await self._quotas.read(tenant, sender, quota)


def _naming(result: R, delivery: NewDelivery) -> R:
    """Return the result of storing a delivery with the guardians that get nothing, the marks that nothing fills, and
    whether its office is empty; a repeat returns the first result as it was stored.
    """
    is_worth_a_note = delivery.uninformed or delivery.unfilled or delivery.empty_office
    if is_worth_a_note and isinstance(result, Accepted) and not result.repeated:
        marks, office = delivery.unfilled, delivery.empty_office
        return replace(result, uninformed=delivery.uninformed, unfilled=marks, empty_office=office)
    return result
