"""A bot as its author wrote it: scenarios, triggers, commands, roles, variables, settings. Frozen values, no YAML,
no Redis.

`scenarios.loader` makes one from a folder; the engine reads it. A bot is complete even if its files have problems: what
could not be read is missing, everything else is there.
"""

from collections.abc import Collection, Mapping
from datetime import tzinfo
from zoneinfo import ZoneInfo

from msgspec import Struct

from core.model.json_form import JsonObject, JsonValue
from core.sentence import DEFAULT_LANGUAGE
from scenarios.bot.button_data import normalise
from scenarios.bot.data import Data, Place
from scenarios.bot.times import Schedule
from scenarios.words import Text, sentence

SCOPES = ("person", "chat", "run", "bot")
"""The first part of a variable's name, as in `person.age`."""

STORED_SCOPES = ("person", "chat", "bot")
"""Those that outlive the run."""

TYPES = ("text", "number", "date", "choice", "list")


class Variable(Struct, frozen=True):
    """`options`: of a choice. `default`: its value while none is set, None for none. `expire`: how many seconds a value
    lasts; 0: as long as the bot knows the person or the chat.
    """

    type: str = "text"
    options: tuple[str, ...] = ()
    default: JsonValue = None
    expire: int = 0


def split_name(name: str) -> tuple[str, str] | None:
    """Return scope and name of `person.age`; None if it has no known scope."""
    scope, _, short = name.strip().partition(".")
    return (scope, short) if scope in SCOPES and short else None


_TEXT = ("exact", "state", "regex", "starts_with", "contains", "*")

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "text": _TEXT,
    "callback": ("exact", "state", "contains", "*"),
    "new_member": ("group", "link", "creator", "initiator", "default"),
    "left_member": ("group", "initiator", "default"),
    "changed_member": ("status", "group", "initiator", "default"),
    "join_request": ("group", "link", "creator", "default"),
    "edited": _TEXT,
    "inline_query": tuple(kind for kind in _TEXT if kind != "state"),
    "answer": _TEXT,
    "reply": _TEXT,
}
"""The sections of a trigger file, one for each kind of event, with their kinds in the order in which they are tried."""

OPTIONAL = ("new_member", "left_member", "changed_member", "join_request", "edited", "inline_query", "answer", "reply")
"""Kinds of events that a bot without triggers for them does not receive."""

OF_GROUPS = ("new_member", "left_member", "changed_member", "join_request")
"""Kinds of events that happen only in groups."""

OUTCOMES = ("completed", "failed", "unknown", "drop")
ANY = frozenset(OUTCOMES)

NAMED = {**{outcome: frozenset((outcome,)) for outcome in OUTCOMES}, "failed": frozenset(("failed", "unknown"))}
"""Word in `chain` or `chain_drop` → the outcomes that it names. `failed` names what is unknown, too: the dialect has no
`unknown`, and files written for it expect `failed` there (docs/decisions/0077).
"""


class Action(Struct, frozen=True):
    """One step of a scenario. `fields`: all fields as written, also `chain` and those that the type does not declare.

    `chain`: the outcomes of the previous action after which this one runs; None if it does not wait; empty if it names
    only unknown outcomes. `chain_drop`: the outcomes of this action after which everything chained to it is dropped.
    `placeholder`: None if it is not written. `step`: its own name, `after`: that of the earlier action of its scenario
    whose outcome its chain depends on; "" means the action before it. `on_failure`, `otherwise`: the full names of the
    scenarios that run if it has failed, or has ended as `drop` by itself; "" if there is none.
    """

    type: str
    fields: JsonObject
    place: Place
    chain: frozenset[str] | None = None
    chain_drop: frozenset[str] = frozenset()
    placeholder: bool | None = None
    step: str = ""
    after: str = ""
    on_failure: str = ""
    otherwise: str = ""

    @property
    def handlers(self) -> tuple[str, ...]:
        """The scenarios that stand in its `on_failure` and `otherwise`."""
        return tuple(name for name in (self.on_failure, self.otherwise) if name)


class Scenario(Struct, frozen=True):
    """`name` is the full name: `file.name`, in a folder `folder.file.name`. `short` is the bare name. `is_part`: it
    stands in an action, as `on_failure` or `otherwise`; then it is called `file.name:2.on_failure`, by the number of
    the action, and no author's name finds it.
    """

    name: str
    short: str
    actions: tuple[Action, ...]
    place: Place
    is_part: bool = False


class Target(Struct, frozen=True):
    """A scenario that a trigger starts. `scenario` is its full name.

    `from_chat`: chat ids and the words `private`, `group`, `all`; None if it is not written: then the file decides,
    private chats for triggers.yaml, groups for group_triggers.yaml. `continue_`: lower kinds are tried, too.
    """

    scenario: str
    from_chat: tuple[int | str, ...] | None = None
    continue_: bool = False
    forward_enabled: bool | None = None
    bot_enabled: bool | None = None


class Trigger(Struct, frozen=True):
    """One entry of a trigger file. `key`: the text, pattern or state to compare with, "" for the kinds `*` and
    `default`. It is as written, so comparing without case is the engine's.
    """

    key: str
    targets: tuple[Target, ...]
    place: Place


Kinds = Mapping[str, tuple[Trigger, ...]]
"""Kind → its triggers in the order of the file. Every kind is there, perhaps empty."""


class Triggers(Struct, frozen=True):
    """One trigger file, by section. Entries without a scenario and patterns that do not compile are left out."""

    text: Kinds
    callback: Kinds
    new_member: Kinds
    left_member: Kinds = {}
    changed_member: Kinds = {}
    join_request: Kinds = {}
    edited: Kinds = {}
    inline_query: Kinds = {}
    answer: Kinds = {}
    reply: Kinds = {}

    def section(self, name: str) -> Kinds:
        """Return the kinds of one of `SECTIONS`."""
        kinds: Kinds = getattr(self, name)
        return kinds


def no_triggers() -> Triggers:
    return Triggers(**{name: dict.fromkeys(kinds, ()) for name, kinds in SECTIONS.items()})


class BotCommand(Struct, frozen=True):
    """A command of the bot's menu."""

    command: str
    description: str
    scope: str = "default"
    chat_id: int | str | None = None
    user_id: int | None = None


class Role(Struct, frozen=True):
    """`permissions` and `users` (Telegram ids) in the order of the file."""

    name: str
    description: str = ""
    permissions: tuple[str, ...] = ()
    users: tuple[int, ...] = ()


class Bot(Struct, frozen=True):
    """`scenarios`: full name → scenario. `short_names`: bare name → the full names of all scenarios called so.

    `triggers` serve private chats, `group_triggers` groups. `settings`: section → name → value, as written.
    `variables`: those of the environment that stand in the files, name → value; they may be secrets.
    `declared`: what the bot remembers, full name such as `person.age` → its declaration. `schedules`: by name.
    `translations`: language → the scenarios with its texts, if the bot has some (texts/LANGUAGE.yaml).
    `timezone`: its name, "" for that of the installation. `language`: that of people of whom none is known.
    """

    scenarios: Mapping[str, Scenario] = {}
    short_names: Mapping[str, tuple[str, ...]] = {}
    triggers: Triggers = no_triggers()
    group_triggers: Triggers = no_triggers()
    commands: tuple[BotCommand, ...] = ()
    roles: Mapping[str, Role] = {}
    settings: JsonObject = {}
    variables: Mapping[str, str] = {}
    declared: Mapping[str, Variable] = {}
    schedules: Mapping[str, Schedule] = {}
    translations: Mapping[str, Mapping[str, Scenario]] = {}
    timezone: str = ""
    language: str = DEFAULT_LANGUAGE

    def zone(self, default: tzinfo) -> tzinfo:
        """Return the time zone of the bot; `default` if bot.yaml names none."""
        return ZoneInfo(self.timezone) if self.timezone else default

    def action(self, scenario: str, number: int, written: Action, language: str) -> Action:
        """Return an action, which a scenario has at this place, counted from 0, in the language of a person."""
        found = self.translations.get(language, {}).get(scenario)
        actions = found.actions if found else ()
        return actions[number] if number < len(actions) and actions[number].type == written.type else written

    def names_button(self, text: str) -> bool:
        """Return whether a trigger of `callback` is about this button, by its text or a part of it."""
        data = normalise(text)
        kinds = [file.callback for file in (self.triggers, self.group_triggers)]
        exact = (one for kind in kinds for one in kind.get("exact", ()))
        parts = (normalise(one.key) for kind in kinds for one in kind.get("contains", ()))
        return any(normalise(one.key) == data for one in exact) or any(part in data for part in filter(None, parts))

    def find(self, name: str, caller: Scenario | None = None) -> Scenario | None:
        """Return the scenario called `name`: by its full name; by its bare name in the file of `caller`; by its bare
        name if no other file has one called so. None if there is none, or several.
        """
        if name in self.scenarios:
            return self.scenarios[name]
        if caller is not None and (near := self.scenarios.get(beside(caller, name))):
            return near
        candidates = self.short_names.get(name, ())
        return self.scenarios[candidates[0]] if len(candidates) == 1 else None


def beside(caller: Scenario, short: str) -> str:
    """Return the full name of a scenario in the same file as `caller`."""
    return caller.name.removesuffix(caller.short) + short


def role_refusal(
    roles: Mapping[str, Role], fields: Mapping[str, Data], user: Data, *, ids: Collection[str] = (), role: str = ""
) -> Text:
    """Return why this person may not run an action with these fields; empty if it may. `user`: the id by which roles
    list the person; `ids`: further ones. `role`: a further role of the person.

    `required_permission` needs all of its permissions and wins over `required_role`, which needs one of its roles.
    """
    known = {str(user), *ids}
    own = {name: one for name, one in roles.items() if name == role or not known.isdisjoint(map(str, one.users))}
    if permissions := _written_words(fields.get("required_permission")):
        missing = permissions - {permission for one in own.values() for permission in one.permissions}
        return sentence("person_lacks_permission", words=", ".join(sorted(missing))) if missing else ""
    allowed = _written_words(fields.get("required_role"))
    if allowed and allowed.isdisjoint({*own, role}):
        return sentence("person_has_none_roles", words=", ".join(sorted(allowed)))
    return ""


def _written_words(value: Data) -> set[str]:
    return {str(one) for one in (value if isinstance(value, list | tuple) else [value]) if one not in (None, "")}


MAX_EVENT_AGE = "max_event_age_seconds"
"""The greatest age of an event at the start of the process."""

STATE_EXPIRE = "state_expire"
"""Duration of a state of the action `user` without `expire`, in seconds or as a duration."""

EVENTS_SECTIONS = ("event_manager", "tg_event_bot")
STATES_SECTION = "user_manager"

FOREIGN: Mapping[str, str] = {**dict.fromkeys(EVENTS_SECTIONS, MAX_EVENT_AGE), STATES_SECTION: STATE_EXPIRE}
"""Section → its only setting that Ada uses."""
