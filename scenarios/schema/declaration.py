"""The declaration of an action type."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import tzinfo
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.errors import Refused
from scenarios import engine
from scenarios.bot import Action
from scenarios.bot.data import Data
from scenarios.engine import Ending
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import types
from scenarios.schema.attributes import Attributes, Field, converted, fields_of
from scenarios.schema.conditions import CONDITION

Execute = Callable[..., Awaitable[Any]]
"""Executes an action: gets a `scenarios.context.Context` and its attributes, returns an `Ending`, a `Waiting` or an
`Asking`. What it raises makes the action fail. Here it has no exact type, because declarations know nothing of the
server.
"""

Rehearse = Callable[..., Ending | None]
"""Plays an action without a server: gets a `scenarios.rehearsal.RehearsedStep` and its attributes, returns how the
action ends, None if it waits.
"""


class Interaction(Struct, frozen=True):
    """The reaction of a waiting action to a person. `is_for`: of the context and an event, whether the event is for the
    step; any other text or press begins something else. `handle`: of the context, the event and the id that a run of it
    would have, returns an `Ending`, None if the step goes on waiting. It may be repeated.
    """

    is_for: Callable[..., bool]
    handle: Callable[..., Awaitable[Ending | None]]


class ActionType(Struct, frozen=True):
    """A type of action. `attributes`: its fields. `returns`: what it adds to the chain, name → meaning.

    `one_of`: at least one of these fields must be written. `other_fields`: authors may add fields of their own.
    `placeholder`: how placeholders are replaced unless the action says otherwise: True as in `send` (C-57), None the
    same, but a text stays as it is written if none of its braces names a value (C-103), False not at all.
    `outcomes`: how it may end when it runs. `execute`: what it does; None: it can only be checked. `failure`: how it
    ends if it is refused, by default with code and detail. `message`: what it sends, of the bot, its step and its
    attributes. `interaction`: of an action that takes several inputs of a person. `tube`: that of a slow action, which
    delays no other one; "" if it runs in place. `needs`: plugins without which it is off, and `telegram`, the Bot API.
    `alias_of`: the action of which this is the name in Coreness. `returns_with`: of a result that is there only if the
    action has a field, that field. `with_failure`: the results that it may return when it fails, too, besides those of
    `failure`.

    `rehearse`: what it does in a dry run; by default it returns what the author wrote under the names of its results,
    otherwise `samples`. `outside`: of the attributes, whether it asks a service outside of Ada; then it does
    the same in a test, or `simulate`: of the context, the attributes and what the test says that it returns, None for
    nothing. `from_person`:
    the results that a person, or a model for a person, has written.
    """

    name: str
    help: str
    attributes: type[Attributes] = Attributes
    returns: Mapping[str, str] = {}
    returns_with: Mapping[str, str] = {}
    with_failure: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    other_fields: bool = False
    placeholder: bool | None = None
    outcomes: tuple[str, ...] = ("completed", "failed")
    execute: Execute | None = None
    rehearse: Rehearse | None = None
    failure: Callable[[Refused], Ending] | None = None
    message: Callable[..., Struct | None] | None = None
    samples: Mapping[str, str | int] = {}
    from_person: tuple[str, ...] = ()
    interaction: Interaction | None = None
    outside: Callable[[Any], bool] | None = None
    simulate: Execute | None = None
    tube: str = ""
    needs: tuple[str, ...] = ()
    alias_of: str = ""

    def is_outside(self, written: Attributes) -> bool:
        """Return whether it asks a service outside of Ada: also the Bot API, or a model."""
        return bool(self.needs or self.tube or (self.outside and self.outside(written)))

    @property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.attributes)

    def field(self, name: str) -> Field | None:
        return next((field for field in (*self.fields, *COMMON_FIELDS) if field.name == name), None)

    def read(self, action: Action) -> Action:
        """Return an action with its fields as their types read them: `yes` in a flag is true, `0x1F` in a number 31.
        All other texts stay as they are written.
        """
        return replace(action, fields=self._read(action.fields))

    def section(self, settings: Mapping[str, Data]) -> dict[str, Any]:
        """Return what settings.yaml says for the actions of this type."""
        section = settings.get(self.name)
        return {"placeholder": self.placeholder, **self._read(section if isinstance(section, Mapping) else {})}

    def _read(self, written: Mapping[str, Data]) -> dict[str, Data]:
        types_of = {field.name: field.type for field in (*self.fields, *COMMON_FIELDS, ENABLED)}
        return {name: types_of[name].read(value) if name in types_of else value for name, value in written.items()}

    def converted(self, prepared: Prepared, zone: tzinfo) -> Attributes:
        """Return the attributes of an action. `zone`: of moments that name none. Raises Invalid FIELD_INVALID."""
        return converted(self.attributes, prepared, zone)

    def field_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(field.name for field in (*self.fields, *COMMON_FIELDS)))

    def refused(self, refusal: Refused) -> Ending:
        """Return how the action ends if something is refused."""
        if self.failure:
            return self.failure(refusal)
        return engine.refused(refusal)


COMMON_FIELDS = (
    Field("type", types.TEXT, "The type of the action."),
    Field(
        "chain",
        types.OUTCOMES,
        "Wait for the previous action and run only after these outcomes; otherwise this action ends as `drop`. `failed`"
        " names `unknown`, too.",
    ),
    Field(
        "chain_drop",
        types.OUTCOMES,
        "If this action ends so, everything chained after it ends as `drop`. `failed` names `unknown`, too.",
    ),
    Field("step", types.TEXT, "A name for this action, which `after` of a later action of the scenario may use."),
    Field(
        "after",
        types.TEXT,
        "Wait for the earlier action of this name in place of the previous one; without `chain`"
        " until it has completed.",
    ),
    Field(
        "on_failure",
        types.ACTIONS,
        "The actions that run if this one fails or its outcome is unknown; they see `{error}` and `{code}`.",
    ),
    Field(
        "otherwise",
        types.ACTIONS,
        "The actions that run if this one ends as `drop` by itself, because its `when`"
        " does not hold or it does not apply.",
    ),
    Field("placeholder", types.FLAG, "Whether placeholders are replaced in this action: yes, unless it is `false`."),
    Field("placeholders", types.FLAG, "The same as `placeholder`.", alias_of="placeholder"),
    Field(
        "when",
        CONDITION,
        "Run only if this condition holds; otherwise the action ends as `drop`, and `chain: drop` after it is the other"
        " case.",
    ),
    Field("required_role", types.TEXTS, "Only people with one of these roles; for others the action fails."),
    Field(
        "required_permission",
        types.TEXTS,
        "Only people with all of these permissions; for others the action fails. Replaces `required_role`.",
    ),
    Field("group_admin", types.FLAG, "Only administrators of the group; for others the action fails.", default=False),
)
"""The fields that every action has."""

ENABLED = Field("enabled", types.FLAG, "Whether the action can be used.")
"""The field that only a section of settings.yaml has."""
