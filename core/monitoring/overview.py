"""Lists the matters that need an operator, the most urgent first, from the queue, couriers, processes and server
(W-11).
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Any

import msgspec

from core.deliveries.channels import Channels
from core.directory import Directory
from core.directory.offices import OfficeState, state_of_office
from core.directory.syncs import Syncs
from core.errors import StoreRefuses
from core.jobs.states import JobState
from core.model.history_key import DEFAULT_TENANT
from core.model.states import Status
from core.monitoring.bulk_changes import DeadLetters
from core.monitoring.figures import NOT_REACHED, FigureReader, OutcomeCount
from core.processes import ACCEPT_LOSS, ANSWERS, last_loss
from core.processes import overview as processes_now
from core.queue import Queue, Tubes
from core.redis.server_checks import check_settings, check_writes
from core.redis.store import Store
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks

# Workers take due tasks within three seconds.
_OVERDUE_MS = 5000
# Of this many outcomes of an hour, half must not have been reached.
_ENOUGH = 10
# Calls of a webhook: it is tried again within a minute, so one refusal is nothing to look after.
_ENOUGH_REFUSALS = 3
_NOT_WORTH_A_NOTE = frozenset({"cancelled", "skipped", "delivered", "read", "no_contact"})


class MatterKind(StrEnum):
    """The kinds of matters, the most urgent first."""

    OVERDUE = "overdue"
    DATA_LOST = "data_lost"
    HALTED = "halted"
    NOT_RUNNING = "not_running"
    UNSERVED = "unserved"
    UNANSWERED = "unanswered"
    SERVER_SETTING = "server_setting"
    NOT_POLLING = "not_polling"
    FAILURES = "failures"
    UNCLEAR = "unclear"
    JOBS_FAILED = "jobs_failed"
    SYNC = "sync"
    OFFICE = "office"
    WEBHOOK = "webhook"
    DEAD_LETTERS = "dead_letters"
    PAUSED = "paused"
    THROTTLED = "throttled"


URGENT = frozenset(
    {
        MatterKind.OVERDUE,
        MatterKind.DATA_LOST,
        MatterKind.HALTED,
        MatterKind.NOT_RUNNING,
        MatterKind.UNSERVED,
        MatterKind.UNANSWERED,
        MatterKind.SERVER_SETTING,
        MatterKind.NOT_POLLING,
    }
)
"""The kinds that keep messages from being sent, or may lose them. Every other kind goes on by itself or waits for a
decision.
"""


class Matter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that needs attention. `subject`: the tube, channel, webhook, setting, bot, group or part of `./ada up`,
    or the kind of a loss. `count`: tasks that wait or are buried, outcomes, jobs, or ends of a part; `of`: among how
    many. `reason`: in the words of its source. `by`: who paused. `at`: since when, or until when a throttle lasts, Unix
    ms. `command`: what mends it. `words`: what the provider said last, of failures (D-48).
    """

    kind: MatterKind
    subject: str = ""
    count: int = 0
    of: int = 0
    reason: str = ""
    by: str = ""
    at: int = 0
    command: str = ""
    words: str = ""


class Overview(msgspec.Struct, frozen=True):
    """`health`: bad if something urgent is among the matters, attention if anything is, else good. `now`: Unix ms."""

    health: str
    matters: Sequence[Matter]
    now: int


class Overviews:
    """Collects the matters of an installation or of one tenant. `office`: the group that gets what belongs to no
    delivery, "" for none; `bot_tenant`: that of the installation, where it has to be.
    """

    def __init__(
        self,
        store: Store,
        queue: Queue,
        channels: Channels,
        webhooks: Webhooks,
        office: str = "",
        bot_tenant: str = "",
    ) -> None:
        self._office, self._bot_tenant = office, bot_tenant
        self._store = store
        self._queue = queue
        self._channels = channels
        self._webhooks = webhooks
        self._syncs = Syncs(store)

    async def show(self, tenant: str = "") -> Overview:
        """Return what needs attention, the most urgent first; of jobs those of a tenant."""
        now = self._store.now_ms()
        found = (self._work(now), self._processes(), self._server(), self._outcomes(), self._failed_webhooks())
        sources = (*found, self._tubes(), self._jobs(tenant), self._failed_syncs(tenant), self._unread_office(tenant))
        matters = [one for source in sources async for one in source]
        matters.sort(key=lambda one: (list(MatterKind).index(one.kind), -one.count, one.subject))
        return Overview(_health(matters), matters, now)

    async def _work(self, now: int) -> AsyncIterator[Matter]:
        overdue = (await self._queue.inspector.stats()).overdue_ms
        if overdue > _OVERDUE_MS:
            yield Matter(MatterKind.OVERDUE, at=now - overdue)
        channels = await self._channels.views()
        halted = {view.name: view.facts.halted for view in channels if view.facts and view.facts.halted}
        for channel, reason in halted.items():
            yield Matter(MatterKind.HALTED, channel, reason=reason)
        for view in channels:
            for scope, until in sorted((await self._queue.throttles_of(view.name)).items()):
                yield Matter(MatterKind.THROTTLED, view.name, reason=scope, at=until)

    async def _processes(self) -> AsyncIterator[Matter]:
        found = await processes_now(self._store, self._queue, self._channels)
        for tube in found.unserved:
            yield Matter(MatterKind.UNSERVED, tube.tube, tube.ready, command=tube.command)
        for bot in found.unanswered:
            yield Matter(MatterKind.UNANSWERED, bot, command=ANSWERS)
        for process in (view.process for view in found.processes if view.process.is_there and view.process.fault):
            yield Matter(MatterKind.NOT_POLLING, process.name, reason=process.fault, at=process.fault_since)
        halted = {view.name for view in await self._channels.views() if view.facts and view.facts.halted}
        for part in (one.part for one in found.faulty):
            if part.name.removeprefix("courier ") not in halted:
                yield Matter(MatterKind.NOT_RUNNING, part.name, part.ends, reason=part.reason, at=part.since)

    async def _server(self) -> AsyncIterator[Matter]:
        if loss := await last_loss(self._store):
            yield Matter(MatterKind.DATA_LOST, loss.kind, reason=loss.sentence, at=loss.at, command=ACCEPT_LOSS)
        for one in await check_settings(self._store):
            yield Matter(MatterKind.SERVER_SETTING, one.setting, reason=one.why, command=one.correction)
        try:
            await check_writes(self._store)
        except StoreRefuses as fault:
            yield Matter(MatterKind.SERVER_SETTING, fault.code, reason=str(fault))

    async def _outcomes(self) -> AsyncIterator[Matter]:
        outcomes = await FigureReader(self._store, self._queue).outcomes()
        failing = list(failing_channels(outcomes))
        for one in (*failing, *unclear_channels(outcomes, {one.subject for one in failing})):
            yield msgspec.structs.replace(one, words=await self._last_words(one.subject, one.reason))

    async def _last_words(self, channel: str, reason: str) -> str:
        """Return what the provider said last when a message ended for this reason, "" if nothing in seven days."""
        names = [f"{channel}:{status}|{reason}" for status in sorted(NOT_REACHED)]
        read = await self._store.command_each("HMGET", self._store.keys_of_shards("last_words"), *names)
        found = [word for words in read for word in words if word]
        return str(found[0]) if found else ""

    async def _jobs(self, tenant: str) -> AsyncIterator[Matter]:
        keys = self._store.keys_of_shards("job_counts", tenant)
        counts = await self._store.command_each("HGET", keys, JobState.FAILED)
        if failed := sum(int(count or 0) for count in counts):
            yield Matter(MatterKind.JOBS_FAILED, count=failed)

    async def _failed_syncs(self, tenant: str) -> AsyncIterator[Matter]:
        for one in await self._syncs.all(tenant):
            if one.last and one.last.fault:
                yield Matter(MatterKind.SYNC, one.source, reason=one.last.fault, at=one.last.ended)
            elif one.last and one.is_late(self._syncs.now()):
                yield Matter(MatterKind.SYNC, one.source, reason="late", at=one.last.ended)

    async def _unread_office(self, tenant: str) -> AsyncIterator[Matter]:
        if self._office and tenant:
            state = await state_of_office(Directory(self._store), tenant, self._office)
            is_needed = tenant == self._bot_tenant or state is not OfficeState.NO_GROUP
            if state is not OfficeState.READ and is_needed:
                yield Matter(MatterKind.OFFICE, self._office, reason=state)

    async def _failed_webhooks(self) -> AsyncIterator[Matter]:
        """Emit the webhooks that are disabled, have given up messages, or were refused several times without a
        success.
        """
        for webhook in await self._webhooks.all():
            state = await self._webhooks.state(webhook.tenant, webhook.id)
            failed = list(takewhile(lambda one: not one.succeeded, state.attempts))
            if webhook.disabled or state.dead or len(failed) >= _ENOUGH_REFUSALS:
                since = webhook.disabled or (failed[-1].at if failed else 0)
                reason, command = failed[0].fault if failed else "", f"./ada webhook attempts {webhook.id}"
                yield Matter(MatterKind.WEBHOOK, webhook.url, state.dead, reason=reason, at=since, command=command)

    async def _tubes(self) -> AsyncIterator[Matter]:
        if buried := sum(await self._store.command_each("ZCARD", self._store.keys_of_shards("buried"))):
            groups = await DeadLetters(self._store).groups()
            yield Matter(
                MatterKind.DEAD_LETTERS, count=buried, of=len(groups), reason=groups[0].error if groups else ""
            )
        for tube, note in sorted((await Tubes(self._store).pauses()).items()):
            command = f"./ada queue resume {tube}"
            yield Matter(MatterKind.PAUSED, tube, reason=note.reason, by=note.by, at=note.at, command=command)


async def matters_of(store: Store) -> Sequence[Mapping[str, Any]]:
    """Return what needs attention, the most urgent first, as `GET /v1/overview` does; of an office nothing."""
    queue = Queue(store)
    async with WebhookClient() as client:
        webhooks = Webhooks(store, queue, client)
        found = await Overviews(store, queue, Channels(store), webhooks).show(DEFAULT_TENANT)
    matters: Sequence[Mapping[str, Any]] = msgspec.to_builtins(found.matters)
    return matters


def failing_channels(outcomes: Sequence[OutcomeCount]) -> Iterator[Matter]:
    """Emit the channels in which at least half of the last hour's messages did not arrive. Pure."""
    total, failed, why = Counter[str](), Counter[str](), dict[str, str]()
    for one in outcomes:  # the most frequent first
        if one.status in _NOT_WORTH_A_NOTE:
            continue
        total[one.channel] += one.count
        if one.status in NOT_REACHED:
            failed[one.channel] += one.count
            why.setdefault(one.channel, one.reason)
    for channel, count in failed.items():
        if total[channel] >= _ENOUGH and 2 * count >= total[channel]:
            yield Matter(MatterKind.FAILURES, channel, count, total[channel], reason=why[channel])


def unclear_channels(outcomes: Sequence[OutcomeCount], named: Collection[str]) -> Iterator[Matter]:
    """Emit the channels with messages of the last hour that may have arrived or not, unless they are `named`. Pure."""
    unclear, total, why = Counter[str](), Counter[str](), dict[str, str]()
    for one in outcomes:  # the most frequent first
        total[one.channel] += 0 if one.status in _NOT_WORTH_A_NOTE else one.count
        if one.status == Status.UNKNOWN and one.channel not in named:
            unclear[one.channel] += one.count
            why.setdefault(one.channel, one.reason)
    for channel, count in unclear.items():
        yield Matter(MatterKind.UNCLEAR, channel, count, total[channel], reason=why[channel])


def _health(matters: Sequence[Matter]) -> str:
    if any(one.kind in URGENT for one in matters):
        return "bad"
    return "attention" if matters else "good"
