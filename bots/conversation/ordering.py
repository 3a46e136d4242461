"""Confirms and sends what a teacher has written (D-32): number of people, SMS parts, and each refusal in words.

The dialog's id is the Idempotency-Key of the delivery, so a button that is pressed twice, or an attempt that is made
again, sends nothing twice.
"""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from bots.catalogue import text
from bots.conversation.keyboards import Keyboards
from bots.conversation.state import CONFIRM, SELECT, SENT, TIME, State, Turn
from bots.dialog_event import DialogEvent
from bots.replies import Reply
from bots.services import BotServices
from core.errors import Refused
from core.model.delivery import REPLIES_TO_SENDER, NewDelivery, Repeat, Sender
from core.model.people import Member, User
from core.model.text.text_parts import sms_parts
from core.orders import Caller, Order
from core.orders.choices import addressee
from core.orders.following import StatusTask, StatusTasks
from core.orders.typed_times import TypedTime
from couriers.channel import channels
from scenarios.sending.phrases import duration, moment

_PREVIEW = 1000
# code of a refusal → where the dialog goes on
_NEXT = {
    "QUOTA_EXCEEDED": CONFIRM,
    "NOT_OWNER": SELECT,
    "GROUP_NOT_FOUND": SELECT,
    "SUPERGROUP_NOT_FOUND": SELECT,
    "NOBODY_ADDRESSED": SELECT,
    "DELIVER_AT_PAST": TIME,
    "DELIVER_AT_FAR": TIME,
    "TOO_MANY_RECIPIENTS": SELECT,
}


class Talk(Struct, frozen=True):
    """One turn of a dialog: what the person did, who it is, the state before, and its keyboards."""

    event: DialogEvent
    user: User
    state: State
    keyboards: Keyboards


class Ordering:
    """One per process and tenant."""

    def __init__(self, services: BotServices, status_tasks: StatusTasks) -> None:
        self._services = services
        self._status_tasks = status_tasks

    async def people(self, chosen: Sequence[str]) -> Sequence[Member]:
        """Return the people of the chosen groups, each once. Raises NotFound GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND."""
        found = [addressee(ref) for ref in chosen]
        groups = [one.group for one in found if one.group]
        supergroups = [one.supergroup for one in found if one.supergroup]
        return (await self._services.core.directory.expander.expand(self._services.tenant, groups, supergroups)).members

    async def confirm(self, talk: Talk, time: TypedTime | None) -> Turn:
        """Ask for the confirmation; back to the selection if a chosen group is gone. `time`: None for now."""
        try:
            people = await self.people(talk.state.chosen)
        except Refused as refusal:
            return self._refused(talk, refusal)
        state = replace(talk.state, step=CONFIRM, deliver_at=time.at if time else None)
        shown = self._summary(talk.user.locale, people, state)
        if time and time.skipped:
            shown = f"{text('time_skipped', talk.user.locale, time=time.skipped)}\n\n{shown}"
        return Turn([Reply(shown, talk.keyboards.confirmation(), talk.event.message)], state)

    def _summary(self, locale: str, people: Sequence[Member], state: State) -> str:
        usable = [_usable_channels(one.user) for one in people]
        paid_in_parts = {name for name, one in channels().items() if one.in_sms}
        return text(
            "confirm_summary",
            locale,
            people=len(people),
            without=sum(not contacts for contacts in usable),
            sms=sum(any(one in paid_in_parts for one in contacts) for contacts in usable),
            parts=sms_parts(state.text),
            time=moment(state.deliver_at, self._services.timezone) if state.deliver_at else text("now", locale),
            text=state.text if len(state.text) <= _PREVIEW else f"{state.text[:_PREVIEW]}…",
        )

    async def send(self, talk: Talk) -> Turn:
        """Send the delivery. The follower shows its status in the message with the button; nothing else changes that
        message, so an older status never replaces a newer one.
        """
        order = Order(await self._delivery(talk), [addressee(ref) for ref in talk.state.chosen])
        services = self._services
        try:
            accepted = await services.core.sending.send(order, Caller(services.tenant), _repeat(talk))
        except Refused as refusal:
            return self._refused(talk, refusal)
        event = talk.event
        followed = StatusTask(str(accepted.key), event.channel, event.address, event.message, talk.user.locale)
        await self._status_tasks.begin(followed, event.id)
        return Turn([Reply()], replace(talk.state, step=SENT, text="", chosen=()))

    async def _delivery(self, talk: Talk) -> NewDelivery:
        user, state = talk.user, talk.state
        sender = Sender(user.id, user.name, user.role)
        return NewDelivery(
            self._services.tenant,
            sender,
            state.text,
            (),
            (),
            origin=talk.event.channel,
            deliver_at=state.deliver_at,
            replies=REPLIES_TO_SENDER,
        )

    def _refused(self, talk: Talk, refusal: Refused) -> Turn:
        """Return the text for a refusal. Raises a refusal without a text."""
        step = _NEXT.get(refusal.code)
        if step is None:
            raise refusal
        locale = talk.user.locale
        wait = duration(refusal.retry_after, locale) if refusal.retry_after else ""
        shown = text(f"order_{refusal.code.lower()}", locale, time=wait)
        buttons = {CONFIRM: talk.keyboards.confirmation, TIME: talk.keyboards.time}.get(step, tuple)()
        return Turn([Reply(shown, buttons, talk.event.message)], replace(talk.state, step=step))


def _usable_channels(user: User) -> Sequence[str]:
    """Return the channels in which a person has contacts and wants messages."""
    return [channel for channel in user.contacts if channel not in user.opt_out]


def _repeat(talk: Talk) -> Repeat:
    """Return the Idempotency-Key of a dialog."""
    state, event = talk.state, talk.event
    content = "\n".join((state.text, *state.chosen, str(state.deliver_at)))
    return Repeat(f"{event.channel}:{event.address}:{state.dialog}", sha256(content.encode()).hexdigest())
