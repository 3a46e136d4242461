"""A parcel: a slice of one delivery's recipients for one channel, decoded from the task that carries it. Its entries
that are still to attempt, and which of them can be attempted in this claim.

The previous claim left the open entries in the task's checkpoint as `[place, not before ms, attempts, unclear since
ms]`, so that the next claim continues exactly there. What has become final meanwhile is left out. Before its first
attempt a claim writes the checkpoint if more entries wait than the stored one shows.

After a crash every entry that the lost claim may have attempted counts as unclear. With `sending` announced before each
attempt (`NEVER`) these are the announced ones; otherwise all whose next attempt was due by now.
`lua/delivery/modules/unclear.lua` has the same rule for parcels that are not claimed again.

An entry of a message of the day is announced, too. After a crash it stays open: what has become of its text is asked of
its address (`couriers.sending.day_messages`).

An entry ends without an attempt if an earlier channel has reached its recipient (strategy `first`), if its question was
answered before a reminder is sent, or if the channel can show nothing of the delivery.

Invariant I17: where a repeat could double the message, an entry found as `sending` after a crash becomes `unknown` and
is never repeated. Tests: tests/system/crash/test_couriers.py.
Invariant I18: an entry that may have been sent never ends as `failed`, `cancelled` or `expired`. Tests:
tests/couriers/sending/test_ambiguous_ends.py.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from core.answers.buttons import as_reminder
from core.deliveries.delivery_reports import EntryName
from core.deliveries.histories.encoding import load_content, load_plan
from core.deliveries.histories.parcels import Entry, load_parcel, split_label
from core.deliveries.histories.reader import HistoryReader
from core.model.clock import from_ms, to_ms
from core.model.content import Content
from core.model.history_key import HistoryKey
from core.model.hours import is_once_a_day, next_opening
from core.model.json_form import compact_json
from core.model.question import Question, load_question
from core.model.states import OPEN, REACHED, Reason, Status
from core.queue import Task
from core.redis.constants import ASKS_AGAIN, AWAITING_MS
from core.sentence import language_of, language_of_text
from couriers.sending.interface import NEVER, Scope
from couriers.sending.retry_policy import Final, still_remembered
from couriers.sending.services import ParcelServices

_CHECKED_MS = 5000
"""How long the check of an order holds."""
_CONFIRMED = frozenset({Status.DELIVERED, Status.READ})


@dataclass(frozen=True, slots=True)
class Parcel:
    """`number`: which of the channel's parcels, from 0. `group`: the attempt group, 0 for the first attempts and one
    more after each retry that a person asked for. `closed`: a cancellation or a delivery report has closed entries of
    this delivery, so the history must be read before the first attempt. `place`: of the channel in a delivery with the
    strategy `first`, from 1; 0 in others. `is_personal`: the text has marks, which the values of each recipient fill.
    `question`: None if the delivery asks nothing. `label`: its channel, or channel and wave of reminders; its
    outcomes have it in their names. `asks_again`: it is sent only to those whose question is open. `replies`: their
    destination, "" if nobody reads them.
    """

    history_key: HistoryKey
    number: int
    group: int
    entries: Sequence[Entry]
    text: str
    closed: bool
    place: int = 0
    content: Content | None = None
    is_personal: bool = False
    question: Question | None = None
    label: str = ""
    replies: str = ""

    @property
    def language(self) -> str:
        """Return the language of the text, as `NewDelivery.language` does."""
        return self.question.locale if self.question else language_of(language_of_text(self.text))

    @property
    def takes_replies(self) -> bool:
        """Return whether replies to its messages are looked at."""
        return bool(self.replies)

    @property
    def is_answered_in_words(self) -> bool:
        """Return whether a reply to its messages answers a question."""
        return self.question is not None and not self.question.has_options

    @property
    def is_reminder(self) -> bool:
        return self.question is not None and bool(split_label(self.label)[1])

    @property
    def asks_again(self) -> bool:
        return self.place == ASKS_AGAIN

    def name_of(self, entry: Entry) -> EntryName:
        key = self.history_key
        return EntryName(key.shard, key.suffix, self.label, self.number, *entry[:4])

    @classmethod
    def of(cls, task: Task) -> "Parcel":
        """Decode a claimed task that `lua/delivery/functions/enqueue.lua` or `lua/delivery/functions/retry.lua` made.
        `lua/queue/functions/claim.lua` attaches the history's suffix, the encoded parcel, the text, the closed flag,
        the place, and the content, the question and where replies go, if the delivery has them.
        """
        suffix, encoded, text, closed, place, *further = task.attachment
        content = load_content(further[0]) if further else None
        question = load_question(further[1]) if len(further) > 1 else None
        replies = further[2] if len(further) > 2 else ""
        group, entries, personal = load_parcel(encoded)
        _, label, number = task.id.rsplit(".", 2)
        key, of_first = HistoryKey.of(task.shard, suffix), int(place or 0)
        if question and split_label(label)[1]:
            content = as_reminder(content)
        parcel = key, int(number), group, entries, text, bool(closed), of_first, content
        return cls(*parcel, bool(personal), question, label, replies)


class PendingEntry(NamedTuple):
    """An entry without a final outcome, and its `place` in the parcel. Times are server ms. `unclear_since` 0: no
    attempt has had an unclear end. `is_of_day`: it is a part of the message of the day of its recipient
    (`couriers.sending.day_messages`).
    """

    place: int
    entry: Entry
    not_before: int = 0
    attempts: int = 0
    unclear_since: int = 0
    is_of_day: bool = False

    def row(self) -> list[int]:
        return [self.place, self.not_before, self.attempts, self.unclear_since]


def opens_at(entry: Entry, key: HistoryKey, now: int) -> int:
    """Return when the recipient wants the message of this delivery, in ms as `now`; 0 if it does now."""
    if not entry.hours:
        return 0
    opening = next_opening(entry.hours, from_ms(now), from_ms(key.ns // 1_000_000))
    return to_ms(opening) if opening else 0


def checkpoint_of(postponed: Iterable[PendingEntry]) -> str:
    rows = [pending.row() for pending in postponed]
    return compact_json(rows) if rows else ""


class PendingEntries:
    """One per claim. `open`: entries to attempt. `unclear`: entries whose last attempt was cut off by a crash and
    cannot be repeated safely. `remembers`: as of the courier; `in_sms`: its channel is paid in parts.
    """

    def __init__(self, task: Task, parcel: Parcel, remembers: timedelta, *, in_sms: bool = False) -> None:
        self._task = task
        self._parcel = parcel
        self._remembers = remembers
        # Strategy `first`: of a later channel only what lua/delivery/modules/next_channel.lua has chosen is attempted.
        not_before = AWAITING_MS if parcel.place > 1 else 0
        rows = json.loads(task.checkpoint or "[]") or [[place, not_before] for place in range(len(parcel.entries))]
        self._stored = {row[0]: row[1] for row in rows}
        known = [PendingEntry(row[0], parcel.entries[row[0]], *row[1:]) for row in rows]
        has_day = not (parcel.content or parcel.question or in_sms)
        # A lost claim attempted no entry whose hours began after its start.
        self.open = [
            one._replace(
                not_before=max(one.not_before, opens_at(one.entry, parcel.history_key, task.started)),
                is_of_day=has_day and is_once_a_day(one.entry.hours),
            )
            if one.entry.hours
            else one
            for one in known
        ]
        self.unclear: list[PendingEntry] = []
        is_unclear = any(pending.unclear_since for pending in self.open)
        self._may_be_outdated = task.crashed or is_unclear or parcel.closed or task.left < len(self.open)

    def must_be_saved(self, postponed: Iterable[PendingEntry]) -> bool:
        """Return whether the stored checkpoint does not show that these entries wait: after a crash they would count
        as attempted (lua/delivery/modules/unclear.lua). An announced attempt shows that without a checkpoint.
        """
        if self._remembers == NEVER:
            return False
        return any(pending.not_before != self._stored[pending.place] for pending in postponed)

    async def compare(self, reader: HistoryReader) -> None:
        """Remove the entries that are final in the history, after a crash, a cancellation or a delivery report, and
        those whose random id the provider may have forgotten.
        """
        if not self._may_be_outdated or not self.open:
            return
        key = self._parcel.history_key
        fields = [pending.entry.field(self._parcel.label) for pending in self.open]
        stored = await reader.outcomes(key, fields)
        retried = await reader.retried_entries(key, self._parcel.label, self._parcel.number)
        open_entries, self.open = self.open, []
        for pending, field in zip(open_entries, fields, strict=True):
            status = Status((stored[field] or Status.QUEUED).split("|")[0])
            if status not in OPEN or field in retried:
                continue
            since = self._task.started if self._may_have_been_attempted(pending, status) else 0
            known = pending._replace(unclear_since=pending.unclear_since or since)
            (self.open if self._is_repeatable(known) else self.unclear).append(known)

    def unattempted(self, pending: PendingEntry, final: Final) -> Final:
        """Return the end of an entry that is not attempted again: unknown if an attempt may have sent the message
        (D-38).
        """
        return Final(Status.UNKNOWN, self.unclear_reason(pending)) if pending.unclear_since else final

    def unclear_reason(self, pending: PendingEntry) -> Reason:
        may_have_crashed = self._task.crashed or self._remembers == NEVER
        crashed = may_have_crashed and pending.unclear_since == self._task.started
        return Reason.CRASHED if crashed else Reason.ANSWER_LOST

    def _may_have_been_attempted(self, pending: PendingEntry, status: Status) -> bool:
        """Return whether the claim that was lost may have attempted this entry."""
        if self._remembers == NEVER or pending.is_of_day:
            return status is Status.SENDING
        return self._task.crashed and pending.not_before <= self._task.claimed

    def _is_repeatable(self, pending: PendingEntry) -> bool:
        """Return whether another attempt cannot double the message."""
        if pending.is_of_day:
            return True
        age = timedelta(milliseconds=max(0, self._task.claimed - pending.unclear_since))
        return not pending.unclear_since or still_remembered(age, self._remembers)


async def reached_earlier(
    reader: HistoryReader, parcel: Parcel, channel: str, recipients: Collection[int]
) -> frozenset[int]:
    """Return the recipients, by number, that an earlier channel has reached since the parcel became ready: the strategy
    `first` (D-36). With a wait only a delivery report counts. `lua/delivery/modules/next_channel.lua` decides which
    entries of a later channel are attempted; until a courier claims them, a delivery report may have come.
    """
    if parcel.place <= 1 or not recipients:
        return frozenset()
    fields = await reader.read_fields(parcel.history_key, ("plan", "wait"))
    plans = load_plan(fields["plan"] or "")
    names = {f"parcel:{plan.channel}:{parcel.number}": plan.channel for plan in plans[: parcel.place - 1]}
    texts = await reader.read_fields(parcel.history_key, list(names))
    numbers = {
        entry.field(names[name]): entry.number
        for name, text in texts.items()
        for entry in load_parcel(text or "[0,[]]")[1]
        if entry.number in recipients
    }
    enough = _CONFIRMED if fields["wait"] else REACHED
    outcomes = await reader.outcomes(parcel.history_key, list(numbers))
    return frozenset(numbers[name] for name, text in outcomes.items() if text and text.split("|")[0] in enough)


class Selected(NamedTuple):
    """`ready`: to be attempted in this claim. `postponed`: for the next claim. `ended`: with their outcomes."""

    ready: Sequence[PendingEntry]
    postponed: Sequence[PendingEntry]
    ended: Sequence[tuple[PendingEntry, Final]]


class EntrySelection:
    """The selection of one claim, from the open entries of `entries`. `is_empty`: returns whether the channel can show
    nothing of the delivery to an entry.
    """

    def __init__(
        self,
        services: ParcelServices,
        task: Task,
        parcel: Parcel,
        entries: PendingEntries,
        is_empty: Callable[[Entry], bool],
    ) -> None:
        self._services = services
        self._task = task
        self._parcel = parcel
        self._entries = entries
        self._is_empty = is_empty
        self._ready: list[PendingEntry] = []
        self._ended: list[tuple[PendingEntry, Final]] = []

    async def select(self, *, tube_has_throttles: bool) -> Selected:
        """Return what becomes of each open entry. Raises StoreError."""
        throttled = await self._throttled_chats() if tube_has_throttles else {}
        postponed = []
        for pending in self._entries.open:
            not_before = max(pending.not_before, throttled.get(pending.entry.address, 0), self._opens(pending))
            # As of the claim: after a crash this shows which entries may have been attempted.
            if not_before > self._task.claimed:
                postponed.append(pending._replace(not_before=not_before))
            else:
                self._ready.append(pending)
        await self._skip_reached()
        await self._skip_answered()
        await self._refuse_sender()
        self._refuse_empty()
        return Selected(self._ready, postponed, self._ended)

    def _opens(self, pending: PendingEntry) -> int:
        """Return when the recipient wants the message; 0 if a lost claim has moved it to the message of the day."""
        if pending.unclear_since and pending.is_of_day:
            return 0
        return opens_at(pending.entry, self._parcel.history_key, self._task.claimed)

    async def _throttled_chats(self) -> dict[str, int]:
        """Return address → the server ms until which it is throttled."""
        scopes = [f"{Scope.CHAT}:{pending.entry.address}" for pending in self._entries.open]
        throttles = await self._services.queue.throttles(self._services.courier.channel, self._task.shard, scopes)
        return {scope.partition(":")[2]: until for scope, until in throttles.items()}

    async def _skip_reached(self) -> None:
        """End the entries that were never attempted and whose recipients an earlier channel has reached (D-36)."""
        fresh = {pending.entry.number for pending in self._ready if _is_fresh(pending)}
        channel = self._services.courier.channel
        reached = await reached_earlier(self._services.reader, self._parcel, channel, fresh)
        self._end(
            lambda pending: _is_fresh(pending) and pending.entry.number in reached,
            Final(Status.SKIPPED, Reason.REACHED_ELSEWHERE),
        )

    async def _skip_answered(self) -> None:
        """End the entries of recipients with an answer before a parcel that asks again is sent. Later answers are left
        out in the step that writes `sending` (lua/answers/modules/reminders.lua).
        """
        if not self._parcel.asks_again:
            return
        numbers = {pending.entry.number for pending in self._ready if not pending.unclear_since}
        answered = await self._services.reader.answered(self._parcel.history_key, numbers)
        self._end(lambda pending: pending.entry.number in answered, Final(Status.SKIPPED, Reason.ANSWERED))

    async def _refuse_sender(self) -> None:
        """End the entries to which the sender may not write any more, and inform the administrators, once for a
        delivery. What was ordered a moment ago was checked then.
        """
        key, numbers = self._parcel.history_key, {pending.entry.number for pending in self._ready}
        if not numbers or abs(self._task.claimed - key.ns // 1_000_000) < _CHECKED_MS:
            return
        refusals = await self._services.sender_rights.refusals(key, self._task.tenant, numbers)
        for reason in set(refusals.values()):
            await self._services.report_refusal(self._task, key, reason)
            self._refuse({number for number, why in refusals.items() if why is reason}, reason)

    def _refuse(self, numbers: Collection[int], reason: Reason) -> None:
        self._end(lambda pending: pending.entry.number in numbers, Final(Status.FAILED, reason))

    def _refuse_empty(self) -> None:
        """End the entries to which the channel can show nothing of the delivery."""
        self._end(
            lambda pending: self._is_empty(pending.entry),
            Final(Status.FAILED, Reason.CONTENT_REFUSED),
        )

    def _end(self, has_ended: Callable[[PendingEntry], bool], final: Final) -> None:
        ready, self._ready = self._ready, []
        for pending in ready:
            if has_ended(pending):
                self._ended.append((pending, self._entries.unattempted(pending, final)))
            else:
                self._ready.append(pending)


def _is_fresh(pending: PendingEntry) -> bool:
    return not pending.attempts and not pending.unclear_since
