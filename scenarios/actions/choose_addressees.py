"""Has the person select to whom it writes: its groups and supergroups, and people that it may write to (C-115)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from datetime import timedelta
from typing import Annotated

import msgspec
from msgspec.structs import replace

from core.errors import Forbidden
from core.model.clock import in_ms
from core.model.content import ParseMode
from core.model.json_form import JsonObject
from core.model.people import User, id_text
from core.model.text.text_entities import escaped
from core.orders import Caller
from core.orders.choices import PERSON, Addressees, Choice, Recognised, addressee, person_choice, recognise
from core.sentence import language_of
from couriers.channel import channels
from scenarios.bot.button_data import list_id, pressed_message
from scenarios.bot.data import Data
from scenarios.context import Asking, Context
from scenarios.engine import Ending, State, Values, completed, failed
from scenarios.placeholders.values import as_text
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion, types
from scenarios.schema.attributes import Duration, StaysOpenFor, Verbatim, converted
from scenarios.schema.declaration import Interaction
from scenarios.sending.choosing import WORDS, AddresseeSelection, ChoiceList, choice_press, titles_of
from scenarios.sending.message import MessageAttributes, message
from scenarios.sending.orders import say
from scenarios.sending.person import language_of_person, refused, required_person
from scenarios.stores import step_results
from scenarios.stores.questions import AskedBy, Questions
from scenarios.words import placed, sentence

KINDS = ("group", "supergroup", PERSON)
_DEFAULT_KINDS = KINDS[:2]
_TIMEOUT = timedelta(days=1)
_PEOPLE = 50
"""People that one search finds."""

_NAMES = 10
"""Titles in an error."""

_SAMPLES = (Choice("group", "A-1", "A-1"), Choice("group", "A-2", "A-2"), Choice("supergroup", "A", "A"))
"""The groups of a rehearsed person."""

Event = Mapping[str, Data]


class ChooseAddresseesAttributes(Attributes, frozen=True):
    text: Annotated[Verbatim, Own("The question above the list; what is selected stands below it.")] = ""
    kinds: Annotated[
        tuple[str, ...],
        types.choices(*KINDS),
        conversion.texts,
        Own("The tabs: `group`, `supergroup`, `person`. People are found by a text that the person writes."),
    ] = _DEFAULT_KINDS
    begins: Annotated[
        Verbatim,
        Own(
            "A message that begins with the addressee, `ИВТ-101 No classes`: nothing is asked, and `rest` is the rest."
        ),
    ] = ""
    words: Annotated[
        JsonObject, types.named(*WORDS), conversion.mapping, Own(f"Other words, by name: {', '.join(WORDS)}.")
    ] = {}
    language: Annotated[
        str, types.choice("ru", "en"), conversion.text, Own("The language of the list, instead of the person's.")
    ] = ""
    timeout: Annotated[Duration, Own("How long the selection is waited for.")] = _TIMEOUT
    stays_open_for: StaysOpenFor = ()

    def listed(self, name: str, language: str, channel: str) -> ChoiceList:
        """Raises Invalid FIELD_INVALID."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise conversion.invalid("kinds", kind, sentence("one_of", words=", ".join(KINDS)))
        shown = language_of(self.language) if self.language else language
        found = channels().get(channel)
        return ChoiceList(name, self.kinds or _DEFAULT_KINDS, shown, self.words, found.keyboard if found else None)


async def execute(context: Context, written: ChooseAddresseesAttributes) -> Ending | Asking:
    """Show the list once, however often it is executed. Raises Refused."""
    context.require("read")
    user = await required_person(context)
    listed = written.listed(list_id(context.identity), language_of_person(context, user), context.channel)
    choices = await _choices(context, user, AddresseeSelection())
    if written.begins:
        begun = _begun(written.begins, choices)
        return begun if begun.state is State.COMPLETED else await _of_others(context, user, written.begins, begun)
    if not choices and PERSON not in listed.kinds:
        raise Forbidden("NOTHING_OWNED", sentence("owns_no_group"))
    questions = Questions(context.services.core.store, context.services.tenant)
    timeout = written.timeout or _TIMEOUT
    await questions.open(context.event, AskedBy(context.run, context.step.path), timeout)
    first = _first(listed, choices)
    delivery = await say(context, _shown(written, listed, first, choices), "")
    return Asking(context.services.now_ms() + in_ms(timeout), delivery=delivery)


def rehearse(step: RehearsedStep, written: ChooseAddresseesAttributes) -> Ending | None:
    """The person owns two groups and a supergroup."""
    if written.begins:
        return _begun(written.begins, _SAMPLES)
    listed = written.listed("", language_of(step.step.language(step.event)), step.channel)
    step.sent = message(_shown(written, listed, _first(listed, _SAMPLES), _SAMPLES))
    return None


def _begun(text: str, choices: Sequence[Choice]) -> Ending:
    """Return to whom a message is that begins with its addressee; failed if that is not clear."""
    found = recognise(text, choices)
    if isinstance(found, Recognised):
        return _chosen(found.choices, found.text)
    code = "ADDRESSEE_UNCLEAR" if choices else "NOTHING_OWNED"
    return _unclear("ADDRESSEE_SEVERAL" if found.candidates else code, found.candidates or choices)


def _unclear(code: str, choices: Sequence[Choice], title: str = "") -> Ending:
    """Return the end of a message without an addressee; `choices` are named to its author."""
    shown = ", ".join(one.title for one in choices[:_NAMES])
    names = f"{shown}, …" if len(choices) > _NAMES else shown
    said = placed(code, sentence("addressee_unclear", words=names or "–"))
    return failed(code, said, {"names": names, "titles": title, "wait": 0})


async def _of_others(context: Context, user: User, text: str, begun: Ending) -> Ending:
    """Return the end of a message that names no addressee of its author; NOT_OWNER if it names that of others."""
    if begun.code == "ADDRESSEE_SEVERAL":
        return begun
    own = await _choices(context, user, AddresseeSelection())
    everything = recognise(text, await Addressees(context.services.core.directory, context.services.tenant).of(None))
    if isinstance(everything, Recognised):
        return _unclear("NOT_OWNER", own, titles_of([one for one in everything.choices if one not in own]))
    return begun


def _first(listed: ChoiceList, choices: Sequence[Choice]) -> AddresseeSelection:
    kinds = [one.kind for one in choices if one.kind in listed.kinds]
    return AddresseeSelection(kinds[0] if kinds else listed.kinds[0])


async def _choices(context: Context, user: User, selection: AddresseeSelection) -> Sequence[Choice]:
    """Return what the person may write to now; of people those that the search finds."""
    core, tenant = context.services.core, context.services.tenant
    owned = await core.sending.groups_for(Caller(tenant, person=user))
    if not selection.query:
        return owned
    people = await core.sending.find_people(Caller(tenant, person=user), selection.query, _PEOPLE)
    return [*owned, *map(person_choice, people)]


# what the person does


def is_for(context: Context, event: Event) -> bool:
    """Return whether an event is a press in this list, or a text to search for."""
    data = event.get("callback_data")
    if data is not None:
        press = choice_press(as_text(data))
        return press is not None and press.list_id == list_id(context.identity)
    return not as_text(event.get("event_text")).strip().startswith("/")


async def handle(context: Context, event: Event, event_run: str) -> Ending | None:
    """Change the selection, or end it. Raises StoreError."""
    user = await required_person(context)
    written = converted(ChooseAddresseesAttributes, context.prepared, context.services.timezone)
    listed = written.listed(list_id(context.identity), language_of_person(context, user), context.channel)
    stored = await step_results.noted(context)
    before = msgspec.json.decode(stored, type=AddresseeSelection) if stored else None
    choices = await _choices(context, user, before or AddresseeSelection())
    found = _apply(before or _first(listed, choices), listed, choices, event)
    if isinstance(found, Ending):
        people = await _people(context, before or AddresseeSelection())
        if people or found.state is not State.COMPLETED:
            told = {"people": people, "pressed_message_id": pressed_message(event)}
            return replaced(found, returned=found.returned.and_then(Values(told)))
        found = before or AddresseeSelection(), listed.word("nobody")
    selection, notice = found
    await step_results.note(context, msgspec.json.encode(selection).decode())
    if before is None or selection.query != before.query:
        choices = await _choices(context, user, selection)
    press = event if event.get("callback_data") is not None else None
    await say(context, _shown(written, listed, selection, choices, notice), f"chosen:{event_run}", press)
    return None


async def _people(context: Context, selection: AddresseeSelection) -> int:
    """Return how many people are selected, each once."""
    named = [addressee(one.ref) for one in selection.chosen]
    groups = [one.group for one in named if one.group]
    supergroups = [one.supergroup for one in named if one.supergroup]
    if not named:
        return 0
    expander = context.services.core.directory.expander
    members = (await expander.expand(context.services.tenant, groups, supergroups)).members
    alone = {str(one.id) for one in named if one.id} - {id_text(one.user.id) for one in members}
    return len(members) + len(alone)


def _apply(
    before: AddresseeSelection, listed: ChoiceList, choices: Sequence[Choice], event: Event
) -> Ending | tuple[AddresseeSelection, str]:
    """Return how the selection ends; or what it is now, and a line for the person."""
    press = choice_press(as_text(event.get("callback_data")))
    if press is None:
        return before.searching(as_text(event.get("event_text"))), ""
    if press.verb == "cancel":
        return failed("CANCELLED", sentence("person_has_cancelled"))
    if press.verb == "done":
        return _done(before, listed, choices)
    after = before.after(press, choices)
    return (before, listed.word("gone")) if after is None else (after, "")


def _done(
    before: AddresseeSelection, listed: ChoiceList, choices: Sequence[Choice]
) -> Ending | tuple[AddresseeSelection, str]:
    """End, unless nothing is selected or a group is gone. People are checked with the order."""
    if not before.chosen:
        return before, listed.word("nothing")
    known = {one.ref for one in choices}
    left = tuple(one for one in before.chosen if one.kind == PERSON or one.ref in known)
    if len(left) < len(before.chosen):
        return replace(before, chosen=left), listed.word("gone")
    return _chosen(left)


def _chosen(chosen: Sequence[Choice], rest: str = "") -> Ending:
    results: dict[str, Data] = {"chosen": [one.ref for one in chosen], "titles": titles_of(chosen), "rest": rest}
    return completed(results, from_person=("rest",))


# what the person sees


def _shown(
    written: ChooseAddresseesAttributes,
    listed: ChoiceList,
    selection: AddresseeSelection,
    choices: Sequence[Choice],
    notice: str = "",
) -> MessageAttributes:
    text = f"{written.text or escaped(listed.word('whom'), ParseMode.HTML)}\n{listed.state(selection, choices)}"
    above = f"{escaped(notice, ParseMode.HTML)}\n\n" if notice else ""
    return MessageAttributes(above + text, inline=listed.rows(selection, choices))


ACTION = ActionType(
    name="choose_addressees",
    help="Has the person select groups, supergroups and people to whom it may write, and waits for Done. Fails with a"
    " `code` if the person cancels, is not linked, or may write to nobody; ends as `drop` if it begins something else.",
    attributes=ChooseAddresseesAttributes,
    placeholder=True,
    outcomes=("completed", "failed", "unknown", "drop"),
    returns={
        "chosen": "what was selected, for `order`",
        "titles": "their titles, separated by commas",
        "people": "how many people these are; none with `begins`",
        "pressed_message_id": "the message with the list",
        "rest": "with `begins`: the message without its addressee",
        "names": "with `begins`, if it is not clear to whom: what the person may mean, at most ten titles",
        "code": "why it failed: `CANCELLED`, `PERSON_UNKNOWN`, `NOTHING_OWNED`, `ADDRESSEE_UNCLEAR`,"
        " `ADDRESSEE_SEVERAL`, `NOT_OWNER`",
        "wait": "0",
        "delivery_id": "the id of the delivery of the list, if that did not arrive",
        "verdict": "what became of it, if it did not arrive",
        "reached": "how many people it reached",
    },
    returns_with={"rest": "begins", "names": "begins"},
    execute=execute,
    rehearse=rehearse,
    failure=refused,
    interaction=Interaction(is_for, handle),
)
