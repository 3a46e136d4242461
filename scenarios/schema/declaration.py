"""The declaration of an action type."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scenarios.bot import Action
from scenarios.schema import types
from scenarios.schema.conditions import CONDITION
from scenarios.schema.types import Type


class Field(Struct, frozen=True):
    """One field. `help` is a sentence for authors. `default` is what a missing field means; None if nothing."""

    name: str
    type: Type
    help: str
    default: str | int | bool | None = None


Execute = Callable[[Any], Awaitable[Any]]
"""Executes an action: gets a `scenarios.context.Context`, returns an `Ending` or a `Waiting`. What it raises makes the
action fail. Here it has no exact type, because declarations know nothing of the server.
"""


class ActionType(Struct, frozen=True):
    """A type of action. `returns`: what it adds to the chain, name → meaning.

    `one_of`: at least one of these fields must be written. `other_fields`: authors may add fields of their own.
    `placeholder`: how placeholders are replaced unless the action says otherwise: True as in `send` (C-57), None the
    same, but a text stays as it is written if none of its braces names a value (C-103), False not at all.
    `outcomes`: how it may end when it runs. `execute`: what it does; None: it can only be checked. `tube`: that of a
    slow action, which delays no other one; "" if it runs in place. `needs`: plugins without which it is off, and
    `telegram`, the Bot API.
    """

    name: str
    help: str
    fields: tuple[Field, ...] = ()
    returns: Mapping[str, str] = {}
    one_of: tuple[str, ...] = ()
    other_fields: bool = False
    placeholder: bool | None = None
    outcomes: tuple[str, ...] = ("completed", "failed")
    execute: Execute | None = None
    tube: str = ""
    needs: tuple[str, ...] = ()

    def field(self, name: str) -> Field | None:
        return next((field for field in (*self.fields, *COMMON_FIELDS) if field.name == name), None)

    def read(self, action: Action) -> Action:
        """Return an action with its fields as their types read them: `yes` in a flag is true, `0x1F` in a number 31.
        All other texts stay as they are written.
        """
        return replace(action, fields=self._read(action.fields))

    def section(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return what settings.yaml says for the actions of this type."""
        section = settings.get(self.name)
        return {"placeholder": self.placeholder, **self._read(section if isinstance(section, Mapping) else {})}

    def _read(self, written: Mapping[str, Any]) -> dict[str, Any]:
        types_of = {field.name: field.type for field in (*self.fields, *COMMON_FIELDS, ENABLED)}
        return {name: types_of[name].read(value) if name in types_of else value for name, value in written.items()}

    def field_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in (*self.fields, *COMMON_FIELDS))


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
    Field("placeholder", types.FLAG, "Whether placeholders are replaced in this action: yes, unless it is `false`."),
    Field("placeholders", types.FLAG, "The same as `placeholder`."),
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
