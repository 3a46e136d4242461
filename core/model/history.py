"""A history: what became of a delivery. Frozen values, assembled by `core.deliveries.histories.projection`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from core.model.content import Content
from core.model.delivery import Following, GuardedChild, Strategy, Uninformed
from core.model.history_key import HistoryKey, Id
from core.model.question import AnswerRow, AnswerTotals, Question, RecipientAnswer
from core.model.states import DeliveryState, Status, Verdict


class OutcomeRecord(Struct, frozen=True):
    """The outcome of one recipient in one channel. `version`: the version of the history with which it was written, 0
    if it was never written. `not_shown`: what the channel could not show of the delivery (C-91). `detail`: what the
    provider said, in one line (D-48); None if nothing is known. `parts`: in how many it was paid, all attempts
    together; 0 if the channel is not paid in parts. `not_before`: when the hours begin in which the recipient wants
    messages, of an outcome that waits for them.
    """

    status: Status
    reason: str | None = None
    reference: str | None = None
    attempts: int = 0
    at: datetime | None = None
    version: int = 0
    not_shown: Sequence[str] = ()
    detail: str | None = None
    parts: int = 0
    not_before: datetime | None = None


class RecipientRecord(Struct, frozen=True):
    """The outcome of one recipient over all channels. `received_in`: the channels in which it was reached. `text`: its
    own one, of a personal text. `answer`: None if the delivery asks nothing. `reminders`: those sent to it.
    `is_member`: of a group chat, in which it has answered, and no recipient itself. `children`: about whom a guardian
    got the message; `is_child`: one that guardians are asked about, and no recipient itself.
    """

    id: Id
    name: str | None
    origin: Sequence[str]
    received_in: Sequence[str]
    outcomes: Mapping[str, OutcomeRecord]
    text: str | None = None
    answer: RecipientAnswer | None = None
    reminders: Sequence["ReminderRecord"] = ()
    is_member: bool = False
    children: Sequence[GuardedChild] = ()
    is_child: bool = False


class ReminderRecord(Struct, frozen=True):
    """The outcome of a reminder for one recipient. `wave`: which one, from 1."""

    wave: int
    channel: str
    outcome: OutcomeRecord


class Reminders(Struct, frozen=True):
    """The waves of reminders of a question. `sent`: the earlier first. `next_at`: when the next one is planned."""

    sent: Sequence["ReminderWave"] = ()
    next_at: datetime | None = None


class ReminderWave(Struct, frozen=True):
    """Reminders that were made in one step. `people`: to how many. `by`: who wanted them, "" if they were planned.
    `labels`: under which their outcomes are stored.
    """

    at: datetime
    people: int
    by: str
    labels: Sequence[str]


class ChannelRecord(Struct, frozen=True):
    """`state`: "pending" or "reported". `counts`: status → how many, without zeros."""

    state: str
    counts: Mapping[Status, int]


class HistoryLink(Struct, frozen=True):
    """The other delivery of a follow-up, and whom the follow-up goes to."""

    key: HistoryKey
    of: Following


class History(Struct, frozen=True):
    """A delivery and its outcomes. `recipients` is one page of them; `next` is the cursor of the following page.
    `personal`: the fields of a personal text, for which each recipient has a value.
    `question`, `answers`: None if it asks nothing. `follows`: None unless it is a follow-up; `followed_by`: its own
    follow-ups, the oldest first. `left_out`: how many people a follow-up has left out.
    `texts`: language → the text in place of `text`. `refused_replies`: how many recipients have replied though nobody
    reads it. `uninformed`: of a delivery to guardians, those that got nothing.
    """

    key: HistoryKey
    tenant: str
    sender: Mapping[str, Any]
    text: str
    origin: str
    state: DeliveryState
    version: int
    created_at: datetime
    deliver_at: datetime
    released_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    moved_from: datetime | None
    verdict: Verdict
    counts: Mapping[str, int]  # recipients, reached, then one per status
    channels: Mapping[str, ChannelRecord]
    kind: str
    tags: Sequence[str]
    lane: str | None
    priority: int
    reported: int  # how many channels have reported
    recipients: Sequence[RecipientRecord] = ()
    next: str | None = None
    strategy: Strategy = Strategy.ALL
    wait: timedelta | None = None
    content: Content | None = None
    personal: Sequence[str] = ()
    question: Question | None = None
    answers: AnswerTotals | None = None
    reminders: Reminders = Reminders()
    follows: HistoryLink | None = None
    followed_by: Sequence[HistoryLink] = ()
    left_out: int = 0
    texts: Mapping[str, str] = {}
    refused_replies: int = 0
    uninformed: Sequence[Uninformed] = ()


class HistoryChange(Struct, frozen=True):
    """One outcome that changed, or the `answer` of a recipient; without a recipient, a new `deliver_at`, the end of the
    delivery, or the closing of its question. `version` counts the changes of a history from 1. `reminder`: the outcome
    is that of this wave of reminders; 0: of the delivery itself.
    """

    version: int
    recipient: Id | None
    channel: str | None
    outcome: OutcomeRecord | None
    state: DeliveryState
    deliver_at: datetime | None = None
    answer: AnswerRow | None = None
    closed_at: datetime | None = None
    reminder: int = 0
