"""A parcel: a slice of one delivery's recipients for one channel, decoded from the task that carries it."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.answers.buttons import as_reminder
from core.deliveries.histories.encoding import load_content
from core.deliveries.histories.parcels import Entry, load_parcel, split_label
from core.model.content import Content
from core.model.history_key import HistoryKey
from core.model.question import Question, load_question
from core.queue import Task
from core.redis.constants import ASKS_AGAIN


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
    def takes_replies(self) -> bool:
        """Return whether replies to its messages are looked at."""
        return bool(self.replies)

    @property
    def is_answered_in_words(self) -> bool:
        """Return whether a reply to its messages answers a question."""
        return self.question is not None and not self.question.has_options

    @property
    def asks_again(self) -> bool:
        return self.place == ASKS_AGAIN

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
            text, content = as_reminder(text, content, question)
        parcel = key, int(number), group, entries, text, bool(closed), of_first, content
        return cls(*parcel, bool(personal), question, label, replies)
