"""Repeated deliveries (D-49): a message that is sent at each moment of a cron expression, until it is stopped.

    create ─▶ task of the tube `series`, due at the next moment ─▶ handle: send, then the next moment in one step

Guarantees: each moment makes one delivery, over restarts, several processes and kills: its history key is made of the
series and the moment, so a repeat finds it used. A moment that fell due while no process was there is made up for if it
is less than a day ago, and those behind it count as missed. What is refused stands in `problem`; the series goes on.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.directory import Directory
from core.errors import Conflict, Forbidden, NotFound, Refused
from core.model.clock import Backoff, from_ms, to_ms
from core.model.cron import CronExpression
from core.model.history_key import HistoryKey, Id
from core.model.json_form import compact_json
from core.model.people import id_text
from core.orders.order import Caller, Order
from core.orders.sending import Sending
from core.queue import Attempt, NewTask, QueueClient, Result, Tube, Worker
from core.queue.task_ids import TaskIds
from core.redis.keys import KEYS
from core.redis.store import Store

TUBE = "series"
MOST = 500
"""Series of a tenant."""
MADE_UP_FOR = timedelta(days=1)
MISSED = "MOMENT_MISSED"
TAG = "series:"
"""Begins the tag by which the deliveries of a series are found."""
_MOST_COUNTED = 1000
_AT_ONCE = 8
_LEASE = timedelta(seconds=15)
_BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=60))


class SeriesState(StrEnum):
    """`ended`: its end has come."""

    ACTIVE = "active"
    STOPPED = "stopped"
    ENDED = "ended"


class SeriesProblem(Struct, frozen=True):
    """The reason for which nothing was sent at a moment (ms)."""

    code: str
    detail: str
    at: int


class Series(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`message`: a delivery as the API takes it. `words`: its times as they were written. Times in ms, 0 for none.
    `person`: who has made it, "" for a key. `missed`: moments at which no process was there.
    """

    id: str = ""
    tenant: str
    sender: Id
    message: Mapping[str, Any]
    words: str
    cron: str
    zone: str
    until: int = 0
    person: str = ""
    is_admin: bool = False
    may_be_urgent: bool = False
    state: SeriesState = SeriesState.ACTIVE
    created: int = 0
    next: int = 0
    last: int = 0
    last_delivery: str = ""
    sent: int = 0
    missed: int = 0
    problem: SeriesProblem | None = None

    def after(self, moment: datetime) -> int:
        """Return the next moment after another one, 0 behind the end."""
        at = to_ms(CronExpression.parse(self.cron).next(moment, ZoneInfo(self.zone)))
        return 0 if self.until and at > self.until else at

    def moments(self, number: int) -> list[int]:
        """Return its next moments."""
        found = [self.next] if self.next else []
        while found and len(found) < number and (following := self.after(from_ms(found[-1]))):
            found.append(following)
        return found

    def begun(self, now: datetime) -> "Series":
        """Return it with the first moment after `now`."""
        following = self.after(now)
        state = SeriesState.ACTIVE if following else SeriesState.ENDED
        return replace(self, next=following, state=state)

    def stopped(self) -> "Series":
        return replace(self, state=SeriesState.STOPPED, next=0)

    def delivery_key(self, shard: int, at: int) -> HistoryKey:
        """Return the history key of the delivery of a moment: the same on every attempt."""
        digest = blake2b(f"{self.id} {at}".encode(), digest_size=8).digest()
        return HistoryKey(shard, str(self.sender), at * 1_000_000 + int.from_bytes(digest, "big") % 1_000_000)


class SeriesMoment(Struct, frozen=True):
    """The body of a task: a moment of a series (ms)."""

    tenant: str
    series: str
    at: int


_decode = msgspec.json.Decoder(Series).decode
ReadOrder = Callable[[Series], Order]


class SeriesStore:
    """The series of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = TaskIds()

    async def list(self, tenant: str, person: Id | None = None) -> Sequence[Series]:
        """Return the series of a tenant, or of a person, the oldest first."""
        found = map(_decode, await self._store.command("HVALS", self._store.tenant_key("series", tenant)))
        own = [one for one in found if person is None or one.person == id_text(person)]
        return sorted(own, key=lambda one: (one.created, one.id))

    async def read(self, tenant: str, series: str, person: Id | None = None) -> Series:
        """Return a series. Raises NotFound SERIES_NOT_FOUND, also for that of another person."""
        return _decode((await self._text(tenant, series, person))[0])

    async def _text(self, tenant: str, series: str, person: Id | None) -> tuple[str, Series]:
        text = await self._store.command("HGET", self._store.tenant_key("series", tenant), series)
        found = _decode(text) if text else None
        if not text or not found or (person is not None and found.person != id_text(person)):
            raise NotFound("SERIES_NOT_FOUND", "There is no such series.")
        return text, found

    async def create(self, series: Series, now: datetime) -> Series:
        """Keep a new series. Raises Conflict TOO_MANY_SERIES."""
        new = replace(series, id=secrets.token_hex(6), created=to_ms(now)).begun(now)
        if await self._save(new, "") < 0:
            raise Conflict("TOO_MANY_SERIES", f"At most {MOST} series are kept. Remove one first.")
        return new

    async def change(
        self, tenant: str, series: str, change: Callable[[Series], Series | None], person: Id | None = None
    ) -> Series:
        """Change a series, None removes it; return it as `change` has returned it, or as it was. Raises NotFound
        SERIES_NOT_FOUND.
        """
        while True:
            text, stored = await self._text(tenant, series, person)
            changed = change(stored)
            if await self._save(changed or stored, text, is_removed=changed is None, was=stored.next) == 1:
                return changed or stored

    async def _save(self, series: Series, before: str, *, is_removed: bool = False, was: int = 0) -> int:
        """Store a series, with a task for its next moment if that is a new one."""
        due = series.next if series.next != was and not is_removed else 0
        moment = compact_json(SeriesMoment(series.tenant, series.id, due))
        row = NewTask(moment, series.tenant, due=from_ms(due)).row(self._ids.next()) if due else ()
        after = "" if is_removed else compact_json(series)
        shard = self._store.shard_of_tenant(series.tenant)
        return int(await self._store.run("save_series", shard, series.tenant, series.id, before, after, MOST, *row))

    async def delete_all(self, tenant: str, person: Id) -> None:
        for one in await self.list(tenant, person):
            await self.change(tenant, one.id, lambda _: None)


class SeriesSender:
    """Sends what is due. `read_order`: returns the order of a series as its message says it."""

    def __init__(
        self, client: QueueClient, store: Store, sending: Sending, directory: Directory, read_order: ReadOrder
    ) -> None:
        self._client = client
        self._store = store
        self._series = SeriesStore(store)
        self._sending = sending
        self._directory = directory
        self._read_order = read_order

    async def open(self) -> None:
        await self._client.tubes.create(Tube(TUBE, attempts=1000, backoff=_BACKOFF))

    def worker(self) -> Worker:
        """Return a worker of the tube, not yet running."""
        return self._client.worker(TUBE, self.handle, _AT_ONCE, lease=_LEASE)

    async def handle(self, attempt: Attempt) -> Result:
        """Send the delivery of a moment. Raises StoreError: the task is tried again."""
        moment = msgspec.json.decode(attempt.body, type=SeriesMoment)
        now = attempt.task.claimed
        try:
            series = await self._series.read(moment.tenant, moment.series)
            if series.next != moment.at:
                return None  # it was stopped or changed, or another process was faster
            key, problem = await self._sent(series, moment.at, now)
            await self._series.change(
                moment.tenant, moment.series, lambda one: _done(one, moment.at, now, key, problem)
            )
        except NotFound:
            return None
        return None

    async def _sent(self, series: Series, at: int, now: int) -> tuple[HistoryKey | None, SeriesProblem | None]:
        """Send the delivery of a moment; return its key, or why there is none."""
        if now - at >= MADE_UP_FOR / timedelta(milliseconds=1):
            return None, SeriesProblem(MISSED, "No process was there at this time.", at)
        key = None
        try:
            order = self._read_order(series)
            delivery, caller = order.delivery, await self._caller(series)
            key = series.delivery_key(self._store.shard_of(delivery.lane or str(delivery.sender.id)), at)
            tagged = replace(delivery, history_key=key, tags=[*delivery.tags, TAG + series.id])
            await self._sending.send(replace(order, delivery=tagged), caller)
        except Refused as refusal:
            if key and await self._is_sent(key):  # by an earlier attempt of this moment
                return key, None
            return None, SeriesProblem(refusal.code, refusal.detail, at)
        return key, None

    async def _is_sent(self, key: HistoryKey) -> bool:
        return bool(await self._store.command("EXISTS", KEYS["history"].at(key.shard, key.suffix)))

    async def _caller(self, series: Series) -> Caller:
        """Return who sends, with the rights of today if it is a person. Raises Forbidden SENDER_BLOCKED."""
        if not series.person:
            return Caller(series.tenant, is_admin=series.is_admin, may_be_urgent=series.may_be_urgent)
        (user,) = await self._directory.users.lookup(series.tenant, [series.sender])
        if user is None or user.blocked:
            raise Forbidden("SENDER_BLOCKED", "The sender is blocked or was deleted.", "sender.id")
        return Caller(series.tenant, person=user)


def _done(series: Series, at: int, now: int, key: HistoryKey | None, problem: SeriesProblem | None) -> Series:
    """Return a series after one of its moments, unless it was noted before."""
    if series.last >= at:
        return series
    noted = replace(series, last=at, problem=problem)
    if key:
        noted = replace(noted, last_delivery=key.id, sent=series.sent + 1)
    if series.next != at:  # it was stopped or changed while this moment was sent
        return noted
    missed = _passed(series, at, now) + (problem is not None and problem.code == MISSED)
    return replace(noted.begun(from_ms(max(at, now))), missed=series.missed + missed)


def _passed(series: Series, at: int, now: int) -> int:
    """Return how many further moments have passed, at most `_MOST_COUNTED`."""
    count, following = 0, series.after(from_ms(at))
    while following and following <= now and count < _MOST_COUNTED:
        count, following = count + 1, series.after(from_ms(following))
    return count
