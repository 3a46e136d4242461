"""Takes the answers of people to open questions (C-95).

While a question to a person is open, the person's next event is the answer, unless it begins something else: a
command, or another button. An old button, which nothing but `*` takes, leaves the question open. The task of the answer
drives the run from then on, so what follows the answer keeps the person's turn, and the task that drove it before ends.

A text in another channel of the person answers, too, if nothing but `*` takes it and exactly one open question has it
as a right answer: it is put once more, as an event of the chat that asks.

Guarantees: an event that answers starts nothing else; it answers one question once, also after a crash at any point:
what it answers is noted before anything is done, and the end of the step decides.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from core.errors import Invalid
from core.model.text.characters import folded
from core.redis.store import Store
from core.updates.events import PRESS_MEANT, as_press, person_of
from scenarios import engine
from scenarios.actions import ask
from scenarios.actions.variables import change
from scenarios.bot.button_data import pressed_message, turn_of
from scenarios.bot.event_fields import Event
from scenarios.context import Asking, Context
from scenarios.engine import Ending, State, Step, Values, failed, skipped
from scenarios.execution.parking import Parking
from scenarios.execution.runs import RunGone, Runs, StoredRun
from scenarios.execution.step_executor import StepExecutor
from scenarios.placeholders.values import as_text
from scenarios.schema.conversion import texts
from scenarios.schema.questions import EVENTS, NoAnswer, change_by, interrupts, read_answer
from scenarios.sending.results import arrived, ended
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.questions import AskedBy, Questions
from scenarios.words import Text, sentence

INTERRUPTED = sentence("person_has_begun_something")

_MOVED = ("id", "kind", "event_text", "event_date", "language_code")
"""The fields of a text that answers in another chat; the others are of the chat in which it was written."""


class QuestionAnswers:
    """One per process."""

    def __init__(self, store: Store, tenant: str, runs: Runs, executor: StepExecutor, parking: Parking) -> None:
        self._questions = Questions(store, tenant)
        self._forms = Forms(store)
        self._runs = runs
        self._executor = executor
        self._parking = parking

    async def take(
        self, event: Event, event_run: str, task: str, begins: Callable[[], Awaitable[bool]]
    ) -> StoredRun | None:
        """Return the run whose question the event answers, which its task now drives unless the answer was wrong, or
        only turned a page of the options; None if it answers none. `event_run`: the id that a run of the event itself
        would have. `begins`: whether the event begins something that is not meant for old buttons. Raises StoreError.
        """
        if event.get("kind") not in EVENTS or not (by := await self._questions.of(event)):
            return None
        found = await self._asking(by)
        if found is None:
            return None
        stored, step = found
        context = self._executor.context(stored, step)
        if lost := await self._not_arrived(stored, context):
            await self._end(stored, step, lost)
            await self._parking.wake(stored.task)
            return None
        if turn_of(event):
            return stored if await ask.turn_page(context, event, event_run) else None
        if _leaves_open(context, event):
            return None
        if not self._is_for(context, event) or self._is_of_former(context, event):
            if event.get("callback_data") is not None and not await begins():
                return None  # an old button, or one that was pressed twice: the question goes on
            await self._end(stored, step, skipped(INTERRUPTED))
            await self._parking.wake(stored.task)
            return None
        await self._questions.note_answer(event, event_run, AskedBy(by.run, by.path, stored.task))
        answered = await self._answer(stored, context, event, event_run, task)
        return await self._release(answered, stored.task, task)

    async def as_meant(self, event: Event) -> Event:
        """Return a text that is the words of a button of the question which is open, as the press of that button; any
        other event as it is. Raises StoreError.
        """
        press = as_press(event)
        if (
            PRESS_MEANT not in event
            or not (by := await self._questions.of(event))
            or not (found := await self._asking(by))
        ):
            return event
        context, pressed = self._executor.context(*found), press["callback_data"]
        if interaction := self._executor.interaction_of(context.step):
            return press if interaction.is_for(context, press) else event
        own = {button.get("data") or button["text"] for row in ask.attributes_of(context).inline for button in row}
        return press if pressed in own or turn_of(press) else event

    async def elsewhere(self, event: Event, contacts: Mapping[str, Sequence[str]]) -> Event | None:
        """Return a text as an event of the one other private chat of its person in which it is a right answer to an
        open question; None if there is none, or more than one. Raises StoreError.
        """
        kept = {name: value for name, value in event.items() if name in _MOVED}
        chats = [(channel, address) for channel, addresses in contacts.items() for address in addresses]
        found = [
            {**kept, "channel": channel, "user_id": address, "chat_id": address}
            for channel, address in chats
            if (channel, address) != (event["channel"], str(event["user_id"]))
        ]
        right = [moved for moved in found if await self._is_right(moved)]
        return right[0] if len(right) == 1 else None

    async def _is_right(self, event: Event) -> bool:
        by = await self._questions.of(event)
        asking = await self._asking(by) if by else None
        if asking is None:
            return False
        stored, step = asking
        context = self._executor.context(stored, step)
        if self._executor.interaction_of(step):
            return False
        try:
            read_answer(ask.question_of(context), event, context.services.timezone)
        except NoAnswer:
            return False
        return True

    async def resume(self, event: Event, event_run: str, task: str) -> StoredRun | None:
        """Return the run whose question the event was found to answer before a crash; None if there is none."""
        by = await self._questions.answered_by(event, event_run)
        stored = await self._loaded(by) if by else None
        if by is None or stored is None or (step := stored.run.steps.get(by.path)) is None:
            return None
        if not step.is_over:
            stored = await self._answer(stored, self._executor.context(stored, step), event, event_run, task)
        return await self._release(stored, by.task, task)

    def _is_for(self, context: Context, event: Event) -> bool:
        interaction = self._executor.interaction_of(context.step)
        return interaction.is_for(context, event) if interaction else not interrupts(ask.question_of(context), event)

    def _is_of_former(self, context: Context, event: Event) -> bool:
        """Return whether a press is the second one below the question before, whose options may have the same words."""
        message = as_text(pressed_message(event))
        if not message or self._executor.interaction_of(context.step):
            return False
        is_edited = as_text(context.prepared.own.get("exact_message_id")) == message
        return as_text(context.prepared.seen.get("pressed_message_id")) == message and not is_edited

    async def _answer(self, stored: StoredRun, context: Context, event: Event, event_run: str, task: str) -> StoredRun:
        if interaction := self._executor.interaction_of(context.step):
            ending = await interaction.handle(context, event, event_run)
            return stored if ending is None else await self._go_on(stored, context.step, ending, task)
        asked, zone = ask.question_of(context), context.services.timezone
        try:
            value = read_answer(asked, event, zone)
            made = change_by(asked, value, context.bot, zone)
        except NoAnswer as reason:
            return await self._refuse(stored, context, event, event_run, task, reason.said)
        ending = await change(context, [made]) if made else Ending(State.COMPLETED)
        told = {**_sent(stored, context), "answer": value, "pressed_message_id": pressed_message(event)}
        answer = Values(told, from_person=frozenset({"answer"}))
        if asked.form:
            noted = FormAnswer(context.step.path[-1] + 1, value, context.services.now_ms())
            answers = {asked.field: noted}
            try:
                await self._forms.note(context.services.tenant, asked.form, person_of(event), answers, asked.row)
            except Invalid as full:
                ending = engine.refused(full)
        return await self._go_on(stored, context.step, replace(ending, returned=ending.returned.and_then(answer)), task)

    async def _not_arrived(self, stored: StoredRun, context: Context) -> Ending | None:
        """Return the end of a question that did not arrive, of which its run does not know yet."""
        asking = stored.waits.get(context.step.path)
        if not isinstance(asking, Asking) or not (key := asking.under_way):
            return None
        sent = await ended(context.services.core.deliveries, key, stored.tenant)
        found = arrived(context, asking, sent) if sent else None
        return found if isinstance(found, Ending) else None

    async def _refuse(
        self, stored: StoredRun, context: Context, event: Event, event_run: str, task: str, reason: Text
    ) -> StoredRun:
        """Say that it was no answer, or end the step after too many."""
        asked, by = ask.question_of(context), AskedBy(stored.id, context.step.path)
        attempts = await self._questions.note_attempt(event, event_run, by)
        if attempts >= asked.attempts:
            ending = failed("NO_RIGHT_ANSWER", sentence("no_right_answer_attempts", attempts=attempts, text=reason))
            return await self._go_on(stored, context.step, ending, task)
        await ask.repeat(context, f"hint:{event_run}", asked.hint)
        return stored

    async def _go_on(self, stored: StoredRun, step: Step, ending: Ending, task: str) -> StoredRun:
        """End the step; the task of the answer drives the run from now on."""
        taken = await self._runs.take_over(stored, task)  # first: after a crash the end shows which task goes on
        return await self._end(taken, step, ending)

    async def _release(self, stored: StoredRun, before: str, task: str) -> StoredRun:
        """Have the task end that drove the run before the answer's task has taken it over."""
        if before and before != task == stored.task:
            await self._parking.wake(before)
        return stored

    async def _end(self, stored: StoredRun, step: Step, ending: Ending) -> StoredRun:
        return await self._runs.record(stored, step.path, self._executor.finished(stored, step, ending))

    async def _asking(self, by: AskedBy) -> tuple[StoredRun, Step] | None:
        stored = await self._loaded(by)
        step = stored.run.steps.get(by.path) if stored and not stored.is_over else None
        return (stored, step) if stored and step and step.state is State.PENDING else None

    async def _loaded(self, by: AskedBy) -> StoredRun | None:
        try:
            return await self._runs.load(by.run)
        except RunGone:
            return None


def _leaves_open(context: Context, event: Event) -> bool:
    """Return whether an event is a text that is answered while the question stays open."""
    written = folded(as_text(event.get("event_text")))
    return event.get("kind") == "text" and written in map(folded, texts(context.prepared.own.get("stays_open_for")))


def _sent(stored: StoredRun, context: Context) -> Mapping[str, str]:
    """Return what is known of the delivery of a question."""
    asking = stored.waits.get(context.step.path)
    return asking.results if isinstance(asking, Asking) else {}
