"""Makes the messages of a parcel: what the channel shows of the delivery, for each entry.

Called by `couriers.sending.parcel_executor`.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from core.answers import LINK, NUMBER, PRESS, TEXT, AnsweredMessage
from core.answers.buttons import with_tokens
from core.answers.values import in_language
from core.deliveries.histories.encoding import PAGE, load_recipients
from core.deliveries.histories.parcels import Entry, PaidParts
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import MessagePlace
from core.model.contacts.addresses import is_group
from core.model.contacts.subscription import Subscription
from core.model.content import Button, Content, Feature, Limits
from core.model.delivery import NOTICES, REPLIES_OFF
from core.model.history_key import code_of
from core.model.question import AnswerKind, AskedChild, LinkPlace, Pressed, Question, asked_for
from core.model.text.personal import PersonalTemplate, Values, load_texts, values_in
from core.model.text.text_parts import sms_parts
from core.sentence import say
from core.updates.events import SEND_REPLY
from couriers.sending.interface import HasLimits, LinksPreferences, Message, UsesSubscriptions, WritesAsText
from couriers.sending.parcel import Parcel
from couriers.sending.presentation import AnswerWays, Presented, present_asking, ways_of, widest_numbers, with_link
from couriers.sending.services import ParcelServices


class Messages:
    """Of one parcel. `limits`: of the channel. `shared`: what the courier gets, and what its channel does not show; of
    a personal text, with the marks in place of the values.
    """

    def __init__(self, services: ParcelServices, parcel: Parcel, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._parcel = parcel
        self._channel = services.courier.channel
        self._seed = f"{parcel.history_key.id}:{parcel.label}:{parcel.group}"
        # The checks of the courier's protocols take longer than making a message: once for all of a parcel.
        self._has_choices = bool(parcel.content or parcel.question) and isinstance(services.courier, WritesAsText)
        has_own = parcel.question is None and bool(parcel.content and parcel.content.inline)
        self._has_buttons = has_own and Feature.INLINE in services.courier.shows
        self._uses_subscriptions = isinstance(services.courier, UsesSubscriptions)
        self._links_preferences = isinstance(services.courier, LinksPreferences)
        self._template = PersonalTemplate(parcel.text, parcel.content) if parcel.is_personal else None
        self._values: dict[int, Values] = {}
        self._numbers: dict[tuple[int, int], Sequence[int]] = {}
        self.limits = services.courier.limits if isinstance(services.courier, HasLimits) else Limits()
        self._children: dict[int, Sequence[AskedChild]] = {}
        self._locales: dict[int, str] = {}  # of who has stated another language than that of the text
        self._texts: dict[tuple[int, int], str] = {}  # of what is paid in parts, as the courier gets it
        self._asked = parcel.question
        self.shared = self._as_usual()

    def _as_usual(self) -> Presented:
        parcel, asked = self._parcel, self._asked
        return self._present(parcel.text, parcel.content, self._usual_ways(asked), asked)

    def _question(self, entry: Entry) -> Question | None:
        """Return the question as the recipient of an entry answers it."""
        question = self._asked
        if question is None:
            return None
        return asked_for(
            in_language(question, self._locales.get(entry.number, "")), self._children.get(entry.number, ())
        )

    def _usual_ways(self, question: Question | None) -> AnswerWays:
        takes_numbers = question and self.limits.numbers
        options, numbers = self._services.options, widest_numbers(question) if question and takes_numbers else ()
        zone = options.tenant_timezones.get(self._tenant, options.timezone)
        url, is_mailed = options.answer_url, bool(options.mailbox)
        return AnswerWays(url, numbers, is_mailed=is_mailed, zone=zone, is_short=self.limits.in_sms)

    def _ways(self, entry: Entry) -> AnswerWays:
        """Return how the address of an entry may answer."""
        usual = self._usual_ways(self._question(entry))
        numbers = self._numbers.get((entry.number, entry.contact), usual.numbers)
        return ways_of(usual._replace(numbers=numbers), self._channel, entry.address)

    def _present(self, text: str, content: Content | None, ways: AnswerWays, question: Question | None) -> Presented:
        """Return what the courier gets; what answers a question has no tokens yet."""
        if question and self._parcel.is_reminder:
            text = f"{say('reminder', question.locale)}\n{text}"
        return present_asking(question, text, content, self._services.courier.shows, self._as_text, ways)

    def _as_text(self, content: Content) -> Collection[Feature]:
        courier = self._services.courier
        return courier.as_text(content) if isinstance(courier, WritesAsText) else ()

    async def read_values(self, reader: HistoryReader) -> None:
        """Read what is known of each recipient, which never changes, so a repeat has the same text; and when the
        question closes, which changes if it is opened again. Raises StoreError.
        """
        if self._template is None and self._parcel.question is None and not self._links_preferences:
            return
        pages = sorted({entry.number // PAGE for entry in self._parcel.entries})
        names = [f"people:{page}" for page in pages]
        texts = await reader.read_fields(self._parcel.history_key, ["personal", "texts", "answers_until", *names])
        people = [one for page in pages for one in load_recipients(texts[f"people:{page}"] or "[]", page)]
        self._children = {one.number: one.asked_children for one in people if one.asked_children}
        self._locales = {one.number: one.locale for one in people if one.locale}
        fields = json.loads(texts["personal"] or "[]")
        if by_language := load_texts(texts["texts"]):
            self._template = PersonalTemplate(self._parcel.text, self._parcel.content, by_language)
        self._values = {one.number: values_in(fields, one.values) for one in people}
        until = int(texts["answers_until"] or 0)
        if self._asked and self._asked.until != until:
            self._asked = replace(self._asked, until=until)
            self.shared = self._as_usual()

    def presented(self, entry: Entry) -> Presented:
        """Return what the courier gets for an entry, and what its channel does not show."""
        if self._template is None and self._parcel.question is None:
            return self.shared
        ways = self._ways(entry)
        text, content = self._parcel.text, self._parcel.content
        if self._template is not None:
            values = self._values.get(entry.number, {})
            text, content = self._template.text(values), self._template.content(values)
        elif not (self._children.get(entry.number) or self._locales.get(entry.number)) and self._is_usual(ways):
            return self.shared
        presented = self._present(text, content, ways, self._question(entry))
        if presented.content is None or self.shared.content is None:
            return presented
        return presented._replace(content=replace(presented.content, attachments=self.shared.content.attachments))

    def is_empty(self, entry: Entry) -> bool:
        """Return whether the channel can show nothing of the delivery to an entry."""
        return self.presented(entry).is_empty

    def _is_usual(self, ways: AnswerWays) -> bool:
        usual = self._usual_ways(self._parcel.question)
        return ways == usual or (ways.presses and self.shared.answer_by in ("", PRESS))

    def values(self, entry: Entry) -> tuple[tuple[str, str], ...]:
        """Return the values of an entry: entries with equal ones have equal messages."""
        language = [("", self._locales[entry.number])] if entry.number in self._locales else []
        return (*self._values.get(entry.number, {}).items(), *language)

    async def of(self, entries: Sequence[Entry]) -> list[Message]:
        """Return the messages of an attempt. A number that the recipients write from now on answers them; a delivery
        with only a text leaves earlier choices as they are. Raises StoreError.
        """
        if self.shared.answer_by in (NUMBER, TEXT):
            await self._reserve_numbers(entries)
        presented = [self.presented(entry) for entry in entries]
        if self._has_choices:
            for choices, addresses in _addresses_by(entries, [one.choices for one in presented]):
                await self._services.choices.remember(self._tenant, self._channel, addresses, choices)
        if self._has_buttons:
            for buttons, addresses in _addresses_by(entries, [_buttons_of(one.content) for one in presented]):
                if buttons:
                    await self._services.choices.remember_buttons(self._tenant, self._channel, addresses, buttons)
        return [await self._message(entry, one) for entry, one in zip(entries, presented, strict=True)]

    async def _reserve_numbers(self, entries: Sequence[Entry]) -> None:
        """Reserve the numbers of the options; an address that has none left gets a link. A question that is answered by
        a text without a number is noted, too. Raises StoreError.
        """
        key, by_text = self._parcel.history_key, self.shared.answer_by == TEXT
        for entry in entries:
            if by_text and is_group(self._channel, entry.address):
                continue
            message = AnsweredMessage(self._channel, self._parcel.number, entry.contact)
            question = self._question(entry)
            assert question
            place = (self._tenant, self._channel, entry.address, key, question, entry.number, message)
            numbers = await self._services.answer_numbers.reserve(*place, by_text=by_text)
            if not by_text:
                self._numbers[entry.number, entry.contact] = numbers

    async def _message(self, entry: Entry, presented: Presented) -> Message:
        report_url = await self._report_url(entry) if self._services.options.report_url else ""
        text, content, *_ = presented
        if (question := self._question(entry)) and presented.answer_by in (PRESS, LINK):
            text, content = await self._asking(entry, presented, question)
        if self.limits.in_sms:
            self._texts[entry.number, entry.contact] = text
        recipient, preferences_url = f"{entry.id!r}:{entry.contact}", await self._preferences_url(entry.address)
        own = await self._mail_address(entry)
        language = self._locales.get(entry.number) or self._parcel.language
        mailed = await self._reply_address(own, presented), own, self._parcel.history_key.sender == NOTICES, language
        subscription = await self._subscription(entry.address)
        return Message(
            entry.address, text, self._seed, recipient, report_url, content, preferences_url, *mailed, subscription
        )

    async def _reply_address(self, own: str, presented: Presented) -> str:
        """Return the address of a mail if replies to it are read, or answer its question; of what is said about an
        answer, that of the mail with the question. Raises StoreError.
        """
        parcel, question = self._parcel, self._parcel.question
        if own and (place := MessagePlace.of_replies(parcel.replies)):
            return await self._services.reply_addresses.address(self._services.options.mailbox, place)
        is_read = parcel.takes_replies and parcel.replies != REPLIES_OFF
        is_answer = question is not None and not question.is_anonymous and question.kind is not AnswerKind.FILE
        return own if is_read or is_answer or any(one.data.startswith(SEND_REPLY) for one in presented.choices) else ""

    async def _mail_address(self, entry: Entry) -> str:
        """Return the address at which Ada receives what comes back of the mail of an entry. Raises StoreError."""
        parcel, mailbox = self._parcel, self._services.options.mailbox
        if not mailbox:
            return ""
        place = MessagePlace(parcel.history_key, entry.number, parcel.number, entry.contact)
        return await self._services.reply_addresses.address(mailbox, place)

    async def _subscription(self, address: str) -> Subscription | None:
        """Return the subscription behind an address. Raises StoreError."""
        if not self._uses_subscriptions:
            return None
        return (await self._services.subscriptions.find(self._tenant, self._channel, [address]))[0]

    async def _preferences_url(self, address: str) -> str:
        """Return the page on which the recipient chooses what it receives. Raises StoreError."""
        url = self._services.options.preferences_url
        if not url or not self._links_preferences:
            return ""
        return url + await self._services.preference_tokens.seal(self._tenant, self._channel, address)

    def paid_parts(self, entry: Entry) -> PaidParts | None:
        """Return in how many parts the message of an entry is paid; None if its channel is not paid in parts."""
        if not self.limits.in_sms:
            return None
        text = self._texts.get((entry.number, entry.contact))
        return PaidParts(sms_parts(self.presented(entry).text if text is None else text), self.limits.price)

    async def _asking(self, entry: Entry, presented: Presented, question: Question) -> tuple[str, Content | None]:
        """Return text and content with the buttons or the link of one recipient. Raises StoreError."""
        key, tokens, number = self._parcel.history_key, self._services.answer_tokens, self._parcel.number
        if presented.answer_by == LINK:
            place = LinkPlace.of(key, self._channel, entry.number, number, entry.contact)
            return with_link(presented.text, presented.content, await tokens.sign_link(place))
        assert presented.content
        pressed = Pressed(
            key.shard, code_of(key), entry.number, number, entry.contact, is_anonymous=question.is_anonymous
        )
        account = (self._tenant, self._channel, entry.address)
        data = await tokens.of_options(*account, pressed, len(question.options))
        return presented.text, with_tokens(presented.content, question, data)

    async def _report_url(self, entry: Entry) -> str:
        base_url = self._services.options.report_url
        token = await self._services.delivery_reports.token(
            self._parcel.history_key, self._parcel.label, self._parcel.number, entry
        )
        return f"{base_url}{'&' if '?' in base_url else '?'}token={token}"


def _addresses_by(
    entries: Sequence[Entry], shown: Sequence[Sequence[Button]]
) -> Iterable[tuple[Sequence[Button], Sequence[str]]]:
    """Return the addresses that see the same buttons."""
    found: dict[tuple[Button, ...], list[str]] = {}
    for entry, buttons in zip(entries, shown, strict=True):
        found.setdefault(tuple(buttons), []).append(entry.address)
    return found.items()


def _buttons_of(content: Content | None) -> Sequence[Button]:
    """Return the buttons below a message that send something."""
    return [button for row in (content.inline if content else ()) for button in row if button.data]
