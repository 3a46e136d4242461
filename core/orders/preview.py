"""Previews an order: how many people, by which channels, who cannot be reached, when. Pure.

It is made of the delivery that the preparation returns, so that it says what a send would do.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from core.answers.values import in_language
from core.model.content import Content
from core.model.delivery import NewDelivery, QuotaState, Recipient, Strategy
from core.model.hours import next_opening
from core.model.question import Question
from core.model.states import Reason, Status
from core.model.text.personal import PersonalTemplate, values_in
from core.orders.follow_ups import FollowedPeople
from core.orders.preparation import PreparedOrder

BASE = "base"


class ChannelPreview(Struct, frozen=True):
    """`people`: those with a contact in the channel; `addresses`: their contacts there, each of which gets a message.
    `first`: people without a contact in any channel before it.
    """

    people: int
    addresses: int
    first: int


class Unreachable(NamedTuple):
    """A person that no channel reaches. `why`: no_contact, person_blocked, or opted_out if it has left each."""

    recipient: Recipient
    why: str


class Preview(Struct, frozen=True, dict=True):
    """`repeated`: people who are addressed more than once. `quota`: of the sender before the delivery; None if it has
    none. `followed`: None unless it is a follow-up. `later`: people who get it later, in the hours that they want.
    """

    delivery: NewDelivery
    channels: Mapping[str, ChannelPreview]
    unreachable: Sequence[Unreachable]
    repeated: int
    quota: QuotaState | None
    followed: FollowedPeople | None = None
    later: int = 0

    @property
    def people(self) -> int:
        return len(self.delivery.recipients)

    @property
    def is_in_order(self) -> bool:
        """Return whether a person gets the message in the first channel that reaches it only."""
        return self.delivery.strategy is Strategy.FIRST

    def channels_of(self, recipient: Recipient) -> Sequence[str]:
        """Return the channels of the delivery in which a person has a contact, in their order."""
        return [channel for channel in self.delivery.channels if recipient.contacts.get(channel)]

    def message_of(self, number: int) -> tuple[str, Content | None]:
        """Return the text and the content for the recipient with this number, from 0."""
        delivery, personal = self.delivery, self.delivery.personal
        if personal is None:
            return delivery.text, delivery.content
        values = values_in(personal.fields, personal.values[number])
        template = self._template
        return template.text(values), template.content(values)

    def question_of(self, number: int) -> Question | None:
        """Return the question in the language in which the recipient with this number is asked."""
        question, recipient = self.delivery.question, self.delivery.recipients[number]
        return in_language(question, recipient.locale) if question else None

    @property
    def asks_in_languages(self) -> bool:
        """Return whether recipients are asked in another language than that of the question."""
        question = self.delivery.question
        return question is not None and any(one.locale not in ("", question.locale) for one in self.delivery.recipients)

    @cached_property
    def fallbacks(self) -> Sequence[Recipient]:
        """Return those in whose text a default stands for a value that they do not have."""
        personal = self.delivery.personal
        if personal is None:
            return []
        rows = zip(self.delivery.recipients, personal.values, strict=True)
        return [one for one, row in rows if self._template.has_fallback(values_in(personal.fields, row))]

    @property
    def languages(self) -> Mapping[str, int]:
        """Return how many people get each text by its language; `base`: those who get none of them."""
        if not self.delivery.texts:
            return {}
        counts = Counter(one.locale if one.locale in self.delivery.texts else BASE for one in self.delivery.recipients)
        return {language: counts[language] for language in (*self.delivery.texts, BASE)}

    @cached_property
    def _template(self) -> PersonalTemplate:
        return PersonalTemplate(self.delivery.text, self.delivery.content, self.delivery.texts)

    def find(self, recipient: str) -> int | None:
        """Return the number of the person with this id, else of the first with this part of a name; None if the
        delivery has none.
        """
        people, part = self.delivery.recipients, recipient.casefold()
        by_id = (number for number, one in enumerate(people) if str(one.id) == recipient)
        by_name = (number for number, one in enumerate(people) if part in (one.name or "").casefold())
        return next(by_id, next(by_name, None))


def preview_of(prepared: PreparedOrder, quota: QuotaState | None, now: datetime) -> Preview:
    delivery = prepared.delivery
    due = delivery.deliver_at or now
    later = sum(next_opening(one.hours, due, now) is not None for one in delivery.recipients if one.hours)
    unreachable = list(_unreachable(delivery))
    return Preview(delivery, _by_channel(delivery), unreachable, prepared.repeated, quota, prepared.followed, later)


def _by_channel(delivery: NewDelivery) -> Mapping[str, ChannelPreview]:
    people, addresses, first = (dict.fromkeys(delivery.channels, 0) for _ in range(3))
    for recipient in delivery.recipients:
        reached = [channel for channel in delivery.channels if recipient.contacts.get(channel)]
        for channel in reached:
            people[channel] += 1
            addresses[channel] += len(recipient.contacts[channel])
        if reached:
            first[reached[0]] += 1
    return {name: ChannelPreview(people[name], addresses[name], first[name]) for name in delivery.channels}


def _unreachable(delivery: NewDelivery) -> Iterator[Unreachable]:
    for recipient in delivery.recipients:
        if not any(recipient.contacts.get(channel) for channel in delivery.channels):
            has_left = any(channel in recipient.opted_out for channel in delivery.channels)
            left = Reason.PERSON_BLOCKED if recipient.blocked else Reason.OPTED_OUT
            yield Unreachable(recipient, left if has_left else Status.NO_CONTACT)
