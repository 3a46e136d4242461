"""Makes the attempts of one claim of a parcel: announces messages, calls the courier, checks and notes its outcomes.

Outcomes are checked one by one: what cannot be written is the fault of its own message alone.

Invariant I17: before an attempt on a channel without repeat protection, its entries are written as `sending` under our
token. Tests: tests/system/crash/test_couriers.py.

Called by `couriers.sending.parcel_executor`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from core.deliveries.received import MessagePlace, ReceivedMessage
from core.errors import Refused, StoreError
from core.model.states import Reason, Status
from core.queue import Task
from core.queue.checks import error_text, storable
from core.redis.cancel_and_wait import is_cancelled_from_outside
from core.sentence import Sentence, Text
from couriers.provider_calls import noting_calls
from couriers.sending.bot_replies import SignsInAsBot
from couriers.sending.day_messages import DayPart
from couriers.sending.exchange_notes import ExchangeNote
from couriers.sending.interface import (
    NEVER,
    Announces,
    Deferred,
    Halted,
    Message,
    NotWanted,
    Outcome,
    Partly,
    Rejected,
    Scope,
    Sent,
    Unknown,
)
from couriers.sending.outcome_writer import OutcomeWriter
from couriers.sending.parcel import Parcel, PendingEntry
from couriers.sending.services import ParcelServices

log = logging.getLogger(__name__)


class CourierAttempts:
    """The attempts of one claim. `are_announced`: entries are written as `sending` before an attempt, because a repeat
    could double the message, or because who has answered is not asked again.
    """

    def __init__(self, services: ParcelServices, task: Task, parcel: Parcel, writer: OutcomeWriter) -> None:
        self._services = services
        self._courier = services.courier
        self._tenant = task.tenant
        self._parcel = parcel
        self._writer = writer
        self._notes: dict[int, ExchangeNote] = {}  # by place
        self.are_announced = self._courier.remembers == NEVER or parcel.asks_again
        self._courier_announces = isinstance(self._courier, Announces)

    def note_of(self, pending: PendingEntry) -> ExchangeNote:
        """Return what the provider said at the last attempt of an entry."""
        return self._notes.get(pending.place, ExchangeNote())

    async def make(self, batch: Sequence[PendingEntry], messages: Sequence[Message], started: int) -> Sequence[Outcome]:
        """Make one attempt; return the outcomes without secrets. `started`: server ms. Raises NotWanted."""
        notes = self._services.exchange_notes
        with noting_calls() as calls:
            outcomes = await self._outcomes_of(batch, messages)
        outcomes = [notes.cleaned(outcome, message) for outcome, message in zip(outcomes, messages, strict=True)]
        shared = len(batch) > 1
        for pending, message, outcome in zip(batch, messages, outcomes, strict=True):
            is_repeat = pending.attempts > 0 or pending.unclear_since > 0
            if not isinstance(outcome, Sent) or is_repeat:
                note = notes.of(outcome, message, calls, started, shared=shared, is_repeat=is_repeat)
                self._notes[pending.place] = note
        return outcomes

    async def _outcomes_of(self, batch: Sequence[PendingEntry], messages: Sequence[Message]) -> list[Outcome]:
        """Return the checked outcomes. After a fault of the courier its messages may have been sent."""
        try:
            messages = await self._announced(batch, messages)
            if batch[0].is_of_day:
                parts = self._day_parts(batch, messages)
                return await self._services.day_messages.attempt(self._tenant, parts, self._attempted)
            return await self._attempted(messages)
        except NotWanted:
            raise
        except BaseException as fault:  # whatever a courier raises, unless the pool has cancelled the attempt
            if isinstance(fault, asyncio.CancelledError) and is_cancelled_from_outside():
                raise
            self._services.exchange_notes.log_fault(fault)
            return [Unknown(error_text(fault))] * len(messages)

    async def _attempted(self, messages: Sequence[Message]) -> list[Outcome]:
        outcomes = await self._courier.attempt(messages)
        if len(outcomes) != len(messages):
            raise ValueError(f"{len(outcomes)} outcomes for {len(messages)} messages")
        return [checked(outcome) for outcome in outcomes]

    async def _announced(self, batch: Sequence[PendingEntry], messages: Sequence[Message]) -> Sequence[Message]:
        """Announce the messages, unless the courier does it. Raises NotWanted."""
        is_of_day = batch[0].is_of_day
        if not (self.are_announced or is_of_day):
            return messages
        announcements = [_Announcement(self._announce, pending) for pending in batch]
        if self._courier_announces and not is_of_day:
            return [replace(one, announce=announce) for one, announce in zip(messages, announcements, strict=True)]
        await asyncio.gather(*(announce() for announce in announcements))
        return messages

    def _day_parts(self, batch: Sequence[PendingEntry], messages: Sequence[Message]) -> list[DayPart]:
        """Return the parts of messages of the day, each with a name that a repeat of its attempt has, too."""
        key, parcel = self._parcel.history_key, self._parcel
        return [
            DayPart(
                f"{key}:{parcel.label}:{parcel.group}:{pending.entry.number}:{pending.entry.contact}",
                key.ns,
                message,
                pending.unclear_since > 0,
            )
            for pending, message in zip(batch, messages, strict=True)
        ]

    async def _announce(self, pending: PendingEntry) -> None:
        """Write `sending`. Raises NotWanted if nothing may be sent any more by then."""
        await self._writer.announce(pending.entry.item(Status.SENDING, attempts=pending.attempts + 1))
        is_skipped = str(pending.entry.id) in self._writer.skip
        if is_skipped or self._writer.lost or self._writer.cancelled or self._services.account.is_throttled:
            raise NotWanted

    async def pass_on(self, attempted: Sequence[tuple[PendingEntry, Outcome]]) -> None:
        """Pass on what noted outcomes say about chats, the account and dialogs."""
        try:
            for pending, outcome in attempted:
                rest = outcome.rest if isinstance(outcome, Partly) else outcome
                if isinstance(rest, Halted):
                    await self._services.halt(rest.said)
                elif isinstance(rest, Rejected) and rest.is_gone:
                    await self._remove_subscription(pending.entry.address)
                elif isinstance(rest, Deferred) and rest.after is not None and rest.scope is Scope.CHAT:
                    scope = f"{Scope.CHAT}:{pending.entry.address}"
                    await self._services.queue.throttle(self._courier.channel, scope, rest.after)
        except StoreError as fault:
            self._writer.give_up(fault)
        sent = [(self._parcel.name_of(one.entry), outcome) for one, outcome in attempted if isinstance(outcome, Sent)]
        await self._services.read_marks.note(sent)
        if self._parcel.takes_replies or self._parcel.is_answered_in_words:
            await self._note_received(attempted)

    async def _remove_subscription(self, address: str) -> None:
        """Remove a subscription that exists no more. While people are imported it stays: its next message removes
        it.
        """
        try:
            await self._services.subscriptions.remove(self._tenant, self._courier.channel, address)
        except Refused as refusal:
            log.warning("%s: a subscription that is gone stays for now: %s", self._courier.channel, refusal)

    async def _note_received(self, attempted: Sequence[tuple[PendingEntry, Outcome]]) -> None:
        """Note messages that may be replied to; what is said about an answer as a message with its question. If
        the store fails, a reply that quotes one is placed without it.
        """
        courier, about = self._courier, MessagePlace.of_replies(self._parcel.replies)
        channel = courier.replies_in if isinstance(courier, SignsInAsBot) else courier.channel
        received = [
            (
                pending.entry.address,
                ReceivedMessage(
                    outcome.reference if isinstance(outcome, Sent) else "",
                    about.key if about else self._parcel.history_key,
                    about.number if about else pending.entry.number,
                ),
            )
            for pending, outcome in attempted
            if isinstance(outcome, Sent | Unknown) and not _is_earlier_part(outcome)
        ]
        try:
            await self._services.received.note(self._tenant, channel, received)
        except StoreError as fault:
            log.warning("%s: %d messages not noted for replies: %s", channel, len(received), fault)


def _is_earlier_part(outcome: Outcome) -> bool:
    """Return whether a later part of the same message takes its replies."""
    return isinstance(outcome, Sent) and outcome.in_day_message and not outcome.reference


class _Announcement:
    """The announcement of one attempt of an entry: written at the first call."""

    __slots__ = ("_announce", "_is_made", "_pending")

    def __init__(self, announce: Callable[[PendingEntry], Awaitable[None]], pending: PendingEntry) -> None:
        self._announce = announce
        self._pending = pending
        self._is_made = False

    async def __call__(self) -> None:
        if not self._is_made:
            await self._announce(self._pending)
            self._is_made = True


def checked(outcome: Outcome) -> Outcome:
    """Return an outcome that can be written, with escapes for what is no character. Unknown in place of a value that is
    no outcome: the message may have been sent.
    """
    try:
        right: Outcome = _checked(outcome, Outcome)
        return right
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with a value of foreign code
        return Unknown(f"the courier has returned what is no outcome: {error_text(fault)}")


def _checked(outcome: Any, wanted: Any) -> Any:
    if not isinstance(outcome, wanted):
        raise TypeError(type(outcome).__name__)
    names = [field.name for field in fields(outcome)]
    return replace(outcome, **{name: _CHECKS[name](getattr(outcome, name)) for name in names})


def _of_type(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} in place of {getattr(kind, '__name__', kind)}")
    return value


def _text(value: Any) -> str:
    return storable(_of_type(str, value))


def _said(value: Any) -> Text:
    words = storable(str(_of_type(str | Sentence, value)))
    return value if isinstance(value, Sentence) and words == str(value) else words


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "reference": _text,
    "peer": _text,
    "number": lambda value: _of_type(int, value),
    "in_day_message": lambda value: _of_type(bool, value),
    "not_shown": lambda value: tuple(map(_text, value)),
    "reason": Reason,
    "after": lambda value: None if value is None else _of_type(timedelta, value),
    "scope": Scope,
    "is_guess": lambda value: _of_type(bool, value),
    "is_gone": lambda value: _of_type(bool, value),
    "detail": _text,
    "said": _said,
    "rest": lambda value: _checked(value, Outcome),
    "rejected": lambda value: _checked(value, Rejected),
}
