"""Changes what a bot remembers: variables of the person, of the chat, of the run and of the bot, reserved places, with
a limit and a way back, and the state of a person (C-67, C-93, C-105).

A reserved place stands in two lists of one name that variables.yaml declares: that of the bot has the places of all
people, that of the person its own. Guarantees: of many people at the same moment no more get a place than it has room
for; a repeat of the step changes nothing twice; only the person that has a place gives it back.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Annotated

import msgspec
from msgspec import Struct

from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from scenarios.bot.data import Data
from scenarios.bot.model import STATE_EXPIRE, STATES_SECTION, STORED_SCOPES
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.placeholders.values import as_text, is_list
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen, conversion
from scenarios.schema.attributes import Count, Duration, Flag, Text, TextOrEmpty
from scenarios.schema.variables import (
    APPEND,
    REMOVE,
    VARIABLES,
    Change,
    Declared,
    NewValues,
    VariableFault,
    changes_of,
    ending_of_changes,
    is_same,
)
from scenarios.stores import step_results
from scenarios.stores.people import People
from scenarios.stores.variables import Variables
from scenarios.words import sentence


class SetAttributes(Attributes, frozen=True):
    variables: Annotated[
        NewValues,
        VARIABLES,
        conversion.mapping,
        Own(
            "What to set: `{person.name: Anna}`. `{add: 1}` counts, `{append: element}` adds to a list,"
            " `{remove: element}` takes away, an empty value forgets. `{if_empty: value}` sets what has no value,"
            " `{append: element, times: 1}` adds what is not there; otherwise the action fails with `VARIABLE_TAKEN`."
        ),
    ] = None
    expire: Annotated[Duration, Own("How long the values last, instead of what variables.yaml says.")] = None

    @property
    def seconds(self) -> int | None:
        return None if self.expire is None else int(self.expire.total_seconds())


async def execute_set(context: Context, written: SetAttributes) -> Ending:
    """Change the variables once, however often it is executed. Raises Refused."""
    declared, zone = context.bot.declared, context.services.timezone
    try:
        changes = changes_of(written.variables, declared, zone, written.seconds)
    except VariableFault as fault:
        return failed("VALUE_INVALID", fault.said)
    return await change(context, changes)


def rehearse_set(step: RehearsedStep, written: SetAttributes) -> Ending:
    try:
        changes = changes_of(written.variables, step.bot.declared, step.zone, written.seconds)
    except VariableFault as fault:
        return failed("VALUE_INVALID", fault.said)
    return ending_of_changes(changes, step.prepared.seen, {})


async def change(context: Context, changes: Sequence[Change]) -> Ending:
    """Return the ending of a step that has made these changes. Raises Refused."""
    for one in changes:
        elements = ("", *_elements(context.prepared.seen.get(one.scope), one.name))
        if one.verb == REMOVE and not any(is_same(element, one.value) for element in elements):
            context.warn(sentence("nothing_to_remove", name=f"{one.scope}.{one.name}", value=as_text(one.value)))
    variables = Variables(context.services.core.store, context.services.tenant)
    stored = {}
    for scope, of_scope in groupby(sorted(changes, key=lambda one: one.scope), lambda one: one.scope):
        if scope in STORED_SCOPES:
            stored[scope] = await variables.change(context.identity, context.event, list(of_scope))
    return ending_of_changes(changes, context.prepared.seen, stored)


def _elements(variables: Data, name: str) -> list[Data]:
    found = variables.get(name) if isinstance(variables, Mapping) else None
    return list(found) if is_list(found) else []


SET = ActionType(
    name="set",
    help="Sets variables that variables.yaml declares; later actions with a `chain` see the new values.",
    attributes=SetAttributes,
    placeholder=True,
    one_of=("variables",),
    returns={
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
        "bot": "the variables of the bot",
    },
    execute=execute_set,
    rehearse=rehearse_set,
)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_OVER = 50
"""Places whose day is over, that one step takes out of a list."""


class ReserveAttributes(Attributes, frozen=True):
    kind: Annotated[
        Text,
        Own("The name of two lists of variables.yaml, that of the bot and that of the person: `bot: {washes: list}`."),
    ] = ""
    place: Annotated[
        Text,
        Own(
            "What is reserved. One that begins with a day, `2026-12-03 10:00`, leaves the lists when that day is over."
            " With `release` it may be missing: then all places of the person are given back."
        ),
    ] = ""
    limit: Annotated[Count, Own("How many people may have the place.", default=1)] = None
    most: Annotated[Count, Own("How many places of the kind a person may have.", default=1)] = None
    release: Annotated[Flag, Own("Whether the person gives the place back.")] = False


class _Plan(Struct, frozen=True):
    """The changes of a step, fixed by its first attempt. `over`: the places of the bot whose day is over; `gone`:
    those that leave the list of the person.
    """

    over: Sequence[str]
    gone: Sequence[str]


async def execute_reserve(context: Context, written: ReserveAttributes) -> Ending:
    """Reserve the place, or give it back, once, however often it is executed. Raises Conflict PLACE_TAKEN, PLACES_FULL;
    NotFound PLACE_NOT_HELD.
    """
    _check(written, context.bot.declared)
    variables = Variables(context.services.core.store, context.services.tenant)
    known = await step_results.recall(context)
    plan = msgspec.json.decode(known, type=_Plan) if known else await _plan(context, variables, written)
    taken_out = [*plan.over, *(plan.gone if written.release else ())]
    of_bot = await _change(context, variables, "bot", written, taken_out)
    of_person = await _change(context, variables, "person", written, plan.gone)
    return _ending(context.prepared.seen, written, of_bot, of_person)


def _check(written: ReserveAttributes, declared: Declared) -> None:
    """Raises Invalid FIELD_INVALID."""
    for name in lists_of(written.kind):
        if name not in declared or declared[name].type != "list":
            raise Invalid("FIELD_INVALID", sentence("no_list_variables_yaml", name=name), "kind")
    if not written.place and not written.release:
        raise Invalid("FIELD_INVALID", sentence("place_is_missing"), "place")


def lists_of(kind: str) -> tuple[str, str]:
    """Return the names of the variables with the places of a kind."""
    return f"bot.{kind}", f"person.{kind}"


async def _plan(context: Context, variables: Variables, written: ReserveAttributes) -> _Plan:
    now, zone = context.services.now_ms(), context.services.timezone
    today = from_ms(now).astimezone(zone).date()
    places = {
        scope: [str(one) for one in _listed((await variables.stored(scope, context.event, now)).get(written.kind))]
        for scope in ("bot", "person")
    }
    over, own_over = (tuple(one for one in of_scope if _is_over(one, today)) for of_scope in places.values())
    own = [one for one in places["person"] if one not in own_over]
    gone = own_over
    if written.release:
        given_back = [one for one in own if one == written.place] if written.place else own
        if not given_back:
            raise NotFound("PLACE_NOT_HELD", sentence("place_not_held", place=written.place or written.kind))
        gone = (*own_over, *given_back)
    elif len(own) >= (written.most or 1):
        raise Conflict("PLACES_FULL", sentence("places_full", places=", ".join(own)))
    plan = _Plan(over[:_MOST_OVER], gone)
    return msgspec.json.decode(await step_results.remember(context, msgspec.json.encode(plan).decode()), type=_Plan)


async def _change(
    context: Context, variables: Variables, scope: str, written: ReserveAttributes, gone: Sequence[str]
) -> list[Data]:
    """Change the list of a scope; return it. The bot's is changed first: that of the person has always room."""
    expire = context.bot.declared[f"{scope}.{written.kind}"].expire
    changes = [Change(scope, written.kind, REMOVE, one, expire, []) for one in dict.fromkeys(gone)]
    if not written.release:
        limit = (written.limit or 1) if scope == "bot" else 0
        changes.append(Change(scope, written.kind, APPEND, written.place, expire, [], limit))
        if scope == "bot":
            await variables.note_places(context.identity, context.event, written.kind, expire)
    try:
        found = await variables.change(context.identity, context.event, changes)
    except Conflict as conflict:
        said = sentence("place_taken", place=written.place)
        raise Conflict("PLACE_TAKEN", said) from conflict
    return _listed(found[written.kind])


def rehearse_reserve(step: RehearsedStep, written: ReserveAttributes) -> Ending:
    """The place is free, or the person's."""
    _check(written, step.bot.declared)
    places: list[Data] = [] if written.release else [written.place]
    return _ending(step.prepared.seen, written, places, places)


def _ending(
    seen: Mapping[str, Data], written: ReserveAttributes, of_bot: Sequence[Data], of_person: Sequence[Data]
) -> Ending:
    """Return the ending with both scopes, as `set` returns them."""
    lists = {"bot": of_bot, "person": of_person}
    scopes = {scope: {**_mapping(seen.get(scope)), written.kind: found} for scope, found in lists.items()}
    left = max((written.limit or 1) - list(of_bot).count(written.place), 0)
    return completed({**scopes, "place": written.place, "places": of_person, "left": left}, from_person=scopes)


def _mapping(value: Data) -> Mapping[str, Data]:
    return value if isinstance(value, Mapping) else {}


def _is_over(place: str, today: date) -> bool:
    try:
        return bool(_DAY.match(place)) and date.fromisoformat(place[:10]) < today
    except ValueError:  # 2026-13-40 is a name
        return False


def _listed(value: Data) -> list[Data]:
    return list(value) if isinstance(value, list | tuple) else []


RESERVE = ActionType(
    name="reserve",
    help="Reserves a place for the person of the event, or gives it back. Fails with `PLACE_TAKEN` if it has no room,"
    " with `PLACES_FULL` if the person has as many places as it may, with `PLACE_NOT_HELD` if there is none to give"
    " back. The places of a person that is deleted are free again.",
    attributes=ReserveAttributes,
    placeholder=True,
    one_of=("kind",),
    returns={
        "place": "the place",
        "places": "the places of the kind that the person has now",
        "left": "how many people may still have the place",
        "person": "the variables of the person",
        "bot": "the variables of the bot",
    },
    execute=execute_reserve,
    rehearse=rehearse_reserve,
)


_STATE_LASTS = timedelta(seconds=600)
_NO_STATE = failed("FIELD_EMPTY", sentence("no_user_state"))


class UserAttributes(Attributes, frozen=True):
    """`user_id`: the person."""

    user_state: Annotated[TextOrEmpty, Seen('The name of the state; `""` clears it.', may_be_empty=True)] = None
    expire: Annotated[Duration, Seen("How long the state lasts.", default="600s")] = None
    user_id: Annotated[Text, Seen()] = ""

    def lifetime(self, settings: Mapping[str, Data]) -> timedelta:
        """Return how long the state lasts. Raises Invalid FIELD_INVALID."""
        section = settings.get(STATES_SECTION)
        written = section.get(STATE_EXPIRE) if isinstance(section, Mapping) else None
        found = conversion.duration(written, STATE_EXPIRE) if self.expire is None else self.expire
        return _STATE_LASTS if found is None else found


async def execute_user(context: Context, written: UserAttributes) -> Ending:
    """Set the state of a person. Raises Refused."""
    if written.user_state is None:
        return _NO_STATE
    people = People(context.services.core.store, context.services.tenant)
    lifetime = written.lifetime(context.bot.settings)
    await people.set_state(context.channel, written.user_id, written.user_state, lifetime)
    return completed()


def rehearse_user(step: RehearsedStep, written: UserAttributes) -> Ending:
    return _NO_STATE if written.user_state is None else completed()


USER = ActionType(
    name="user",
    help="Sets the state of the person, which the triggers of the kind `state` compare with.",
    attributes=UserAttributes,
    execute=execute_user,
    rehearse=rehearse_user,
)
