"""The teacher's dialog (D-32): addressees, text, time, confirmation. `ordering` sends, `status` shows what follows.

    /select ─▶ select ─ Done ─▶ text ─▶ time ─▶ confirm ─ Send ─▶ the status of the delivery

A button is accepted only if it was signed for this person and belongs to the dialog and step that are open.
"""

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from bots.button_data import ButtonData
from bots.catalogue import text
from bots.conversation.keyboards import Keyboards, Press
from bots.conversation.ordering import Ordering, Talk
from bots.conversation.state import IDLE_STATE, SELECT, SENT, TEXT, TIME, State, Turn, say
from bots.dialog_event import DialogEvent
from bots.replies import Reply
from bots.services import BotServices
from core.model.people import User
from core.orders.choices import Addressees, Choice
from core.orders.delivery_times import FAR
from core.orders.typed_times import TimePassed, TypedTime, read_time, tomorrow_morning

MAX_TEXT = 4096


class SelectionConversation:
    """One per process and tenant. `clock`: the current time, aware."""

    def __init__(
        self,
        services: BotServices,
        button_data: ButtonData,
        ordering: Ordering,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._addressees = Addressees(services.core.directory, services.tenant)
        self._timezone = services.timezone
        self._button_data = button_data
        self._ordering = ordering
        self._clock = clock

    async def begin(self, event: DialogEvent, user: User) -> Turn:
        """Answer /select: a new dialog; what an open one had is dropped."""
        choices = await self._addressees.of(user)
        if not choices:
            return say(text("select_nothing_owned", user.locale))
        state = State(SELECT, secrets.token_hex(4), kind=choices[0].kind)
        return Turn([self._selection(self._talk(event, user, state), choices)], state)

    def _talk(self, event: DialogEvent, user: User, state: State) -> Talk:
        def sign(content: str) -> str:
            return self._button_data.sign(event.channel, event.address, content)

        return Talk(event, user, state, Keyboards(sign, user.locale, state))

    def _selection(self, talk: Talk, choices: Sequence[Choice], notice: str = "") -> Reply:
        chosen = [one.title for one in choices if one.ref in talk.state.chosen]
        shown = text("select_whom", talk.user.locale, chosen=", ".join(chosen)[:1000] or "–")
        return Reply(shown, talk.keyboards.selection(choices), talk.event.message, notice)

    # what is written

    async def written(self, event: DialogEvent, user: User, state: State) -> Turn | None:
        """Answer a text; None if no dialog is open."""
        talk = self._talk(event, user, state)
        match state.step:
            case "select" | "confirm":
                return say(text(f"{state.step}_first", user.locale), state)
            case "text":
                return self._text(talk)
            case "time":
                return await self._typed_time(talk)
        return None

    def _text(self, talk: Talk) -> Turn:
        written, locale = talk.event.text, talk.user.locale
        if not written.strip():
            return say(text("text_missing", locale), talk.state)
        if len(written) > MAX_TEXT:
            return say(text("text_too_long", locale, length=len(written), most=MAX_TEXT), talk.state)
        state = replace(talk.state, step=TIME, text=written)
        return Turn([Reply(text("time_when", locale), talk.keyboards.time())], state)

    async def _typed_time(self, talk: Talk) -> Turn:
        try:
            time = read_time(talk.event.text, self._clock(), self._timezone)
        except TimePassed:
            return say(text("time_passed", talk.user.locale), talk.state)
        if time is None:
            return say(text("time_malformed", talk.user.locale), talk.state)
        if time.at > self._clock() + FAR:
            return say(text("order_deliver_at_far", talk.user.locale), talk.state)
        return await self._ordering.confirm(talk, time)

    # buttons

    async def pressed(self, event: DialogEvent, user: User, state: State, press: Press) -> Turn:
        """Answer a button of the dialog."""
        if press.dialog != state.dialog or (press.step not in (state.step, "any")):
            is_sent = press.dialog == state.dialog and state.step == SENT
            return _notice("button_sent_already" if is_sent else "button_stale", user, state)
        if state.step == SENT:
            return _notice("button_sent_already", user, state)
        talk = self._talk(event, user, state)
        match press.action:
            case "cancel":
                return Turn([Reply(text("cancelled", user.locale), edit=event.message)], IDLE_STATE)
            case "now":
                return await self._ordering.confirm(talk, None)
            case "tomorrow":
                return await self._ordering.confirm(talk, TypedTime(tomorrow_morning(self._clock(), self._timezone)))
            case "send":
                return await self._send(talk)
        return await self._select(talk, press)

    async def _select(self, talk: Talk, press: Press) -> Turn:
        choices = await self._addressees.of(talk.user)
        if press.action == "done":
            return await self._done(talk, choices)
        state = _selected(talk.state, press, choices)
        if state is None:
            return _notice("select_gone", talk.user, talk.state)
        if state == talk.state:
            return Turn([Reply()], state)
        return Turn([self._selection(self._talk(talk.event, talk.user, state), choices)], state)

    async def _done(self, talk: Talk, choices: Sequence[Choice]) -> Turn:
        """Go on to the text, unless no group, or no person, is selected, or a group is gone."""
        if not talk.state.chosen:
            return _notice("select_nothing", talk.user, talk.state)
        here = [one.ref for one in choices if one.ref in talk.state.chosen]
        if len(here) < len(talk.state.chosen):
            return self._again(talk, choices, text("select_gone", talk.user.locale))
        people = await self._ordering.people(here)
        if not people:
            return _notice("select_nobody", talk.user, talk.state)
        titles = ", ".join(one.title for one in choices if one.ref in here)[:1000]
        shown = text("text_write", talk.user.locale, titles=titles, people=len(people))
        return Turn([Reply(shown, talk.keyboards.cancel(), talk.event.message)], replace(talk.state, step=TEXT))

    def _again(self, talk: Talk, choices: Sequence[Choice], reason: str) -> Turn:
        """Return to the selection with what is left of it."""
        left = [one.ref for one in choices if one.ref in talk.state.chosen]
        state = replace(talk.state, step=SELECT, chosen=left)
        shown = self._selection(self._talk(talk.event, talk.user, state), choices)
        return Turn([replace(shown, text=f"{reason}\n\n{shown.text}")], state)

    async def _send(self, talk: Talk) -> Turn:
        turn = await self._ordering.send(talk)
        if turn.state.step != SELECT:
            return turn
        choices = await self._addressees.of(talk.user)
        if not choices:
            return Turn([replace(turn.replies[0], edit=talk.event.message)], IDLE_STATE)
        return self._again(talk, choices, turn.replies[0].text)


def _selected(state: State, press: Press, choices: Sequence[Choice]) -> State | None:
    """Return the state after a tab, page or toggle; None if the group is gone."""
    match press.action:
        case "tab":
            return replace(state, kind=press.argument, page=0)
        case "page":
            return replace(state, page=int(press.argument))
    choice = next((one for one in choices if one.short == press.argument), None)
    if choice is None:
        return None
    others = [ref for ref in state.chosen if ref != choice.ref]
    is_on = choice.ref in state.chosen
    if is_on == (press.action == "on"):
        return state
    return replace(state, chosen=[*others, choice.ref] if press.action == "on" else others)


def _notice(name: str, user: User, state: State) -> Turn:
    """Refuse a button: a text over the chat; nothing else changes."""
    return Turn([Reply(notice=text(name, user.locale))], state)
