"""The conversation of channels with text alone, SMS and VK: linking, and messages to groups (D-24, D-28, D-30).

    ИВТ-101 Пары не будет ─▶ sent with the role of the person ─▶ how many people it goes to, or why it does not go
                                                              ─▶ when it has ended, its result (D-17)

Guarantees: a message is sent once, however often its event is processed. Each refusal has its own text. The result
comes once, also if processes are restarted meanwhile.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from bots.catalogue import text
from bots.conversation.commands import is_teacher
from bots.conversation.linking import LinkingConversation
from bots.conversation.result import FIRST_LOOK
from bots.conversation.state import State, Turn, say
from bots.dialog_event import DialogEvent, as_event
from bots.services import BotServices
from core.errors import QuotaExceeded, Refused
from core.model.delivery import REPLIES_TO_SENDER, Accepted, NewDelivery, Repeat, Sender
from core.model.people import User
from core.orders import Caller, Order
from core.orders.choices import Addressees, Choice, addressee
from core.orders.following import StatusTask, StatusTasks
from core.orders.recognition import Recognised, UnclearWords, recognise
from scenarios.sending.phrases import duration, moment

MOST_CHARACTERS = 4096
MOST_NAMES = 10
"""Names in an answer."""

_HELP = frozenset({"help", "помощь", "справка", "?"})
# code of a refusal → name of its text
_REFUSALS = {
    "NOBODY_ADDRESSED": "written_nobody",
    "TOO_MANY_RECIPIENTS": "written_too_many",
    "NOT_OWNER": "written_no_longer_owner",
    "GROUP_NOT_FOUND": "written_gone",
    "SUPERGROUP_NOT_FOUND": "written_gone",
}


def help_of_text(user: User | None) -> str:
    """Return the name of the help text for a person."""
    if user is None:
        return "written_help_guest"
    return "written_help_teacher" if is_teacher(user) else "written_help_student"


class TextConversation:
    """One per process."""

    def __init__(self, services: BotServices, status_tasks: StatusTasks) -> None:
        self._services = services
        self._status_tasks = status_tasks
        self._addressees = Addressees(services.core.directory, services.tenant)
        core = services.core
        self._linking = LinkingConversation(
            services.linking, core.directory, core.preferences, services.tenant, services.public_url, help_of_text
        )

    async def converse(self, event: DialogEvent, state: State) -> Turn:
        """Answer one event. Raises StoreError."""
        if event.text.strip().casefold() in _HELP:
            event = replace(event, text="/help")
        if event.button and not event.text:
            return Turn([])  # a button of a message that no dialog has sent
        directory, tenant = self._services.core.directory, self._services.tenant
        user = await directory.users.by_contact(tenant, event.channel, event.address)
        if user and user.blocked:
            return Turn([])
        turn = await self._linking.answer(event, user, state)
        if turn is not None or user is None:
            return turn or Turn([])
        answer = await self._send(event, user)
        return say(answer) if answer else Turn([])

    async def _send(self, event: DialogEvent, user: User) -> str:
        """Send what a linked person has written; return the answer, "" if its thread answers."""
        if not is_teacher(user):
            is_reply = await self._services.replies.take(as_event(event))
            return "" if is_reply else text("written_not_teacher", user.locale)
        choices = await self._addressees.of(user)
        found = recognise(event.text, choices)
        match found:
            case Recognised():
                return await self._send_to(found, event, user)
            case UnclearWords():
                return await self._unclear(found, choices, event, user)
        assert_never(found)

    async def _send_to(self, found: Recognised, event: DialogEvent, user: User) -> str:
        title = found.choice.title
        if not found.text:
            return text("written_no_text", user.locale, name=title)
        if len(found.text) > MOST_CHARACTERS:
            return text("written_too_long", user.locale, length=len(found.text), most=MOST_CHARACTERS)
        try:
            accepted = await self._order(found, event, user)
        except QuotaExceeded as refusal:
            return text("written_quota_exceeded", user.locale, time=duration(refusal.retry_after, user.locale))
        except Refused as refusal:
            return _refused(refusal, title, user)
        followed = StatusTask(str(accepted.key), event.channel, event.address, "", user.locale, title=title)
        await self._status_tasks.begin(followed, event.id, after=FIRST_LOOK)
        return self._accepted(accepted, title, user)

    async def _order(self, found: Recognised, event: DialogEvent, user: User) -> Accepted:
        services = self._services
        delivery = NewDelivery(
            tenant=services.tenant,
            sender=Sender(user.id, user.name, user.role),
            text=found.text,
            recipients=(),
            channels=(),
            origin=event.channel,
            replies=REPLIES_TO_SENDER,
        )
        order = Order(delivery, [addressee(found.choice.ref)])
        repeat = Repeat(f"update.{event.channel}.{event.id}", found.choice.ref)
        return await services.core.sending.send(order, Caller(services.tenant), repeat)

    def _accepted(self, accepted: Accepted, title: str, user: User) -> str:
        people = accepted.recipients
        if accepted.moved_from is None:
            return text("written_sent", user.locale, name=title, people=people)
        morning = moment(accepted.deliver_at, self._services.timezone)
        return text("written_moved", user.locale, name=title, people=people, time=morning)

    async def _unclear(self, unclear: UnclearWords, choices: Sequence[Choice], event: DialogEvent, user: User) -> str:
        if unclear.candidates:
            return text("written_several", user.locale, names=_names(unclear.candidates))
        everything = await self._addressees.of(replace(user, role="admin"))
        others = recognise(event.text, everything)
        if isinstance(others, Recognised):
            return text("written_not_owner", user.locale, name=others.choice.title, names=_names(choices))
        if not choices:
            return text("written_no_groups", user.locale)
        return text("written_unclear", user.locale, names=_names(choices))


def _refused(refusal: Refused, title: str, user: User) -> str:
    """Return the text for a refusal of `core.orders`. Raises a refusal without a text."""
    if refusal.code not in _REFUSALS:
        raise refusal
    return text(_REFUSALS[refusal.code], user.locale, name=title)


def _names(choices: Sequence[Choice]) -> str:
    """Return the titles, as many as fit."""
    shown = ", ".join(one.title for one in choices[:MOST_NAMES])
    return f"{shown}, …" if len(choices) > MOST_NAMES else shown
