"""The types about forms."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.bots.runs import PersonName
from delivery.schemas.fields.timestamps import write_time
from delivery.schemas.requests import RequestModel


class FormQuery(RequestModel, frozen=True):
    """The page of a form."""

    cursor: Annotated[str, Meta(pattern="^[0-9]{1,9}(-[0-9]{1,9})*$")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 1000})] | UnsetType = UNSET


class PersonQuery(RequestModel, frozen=True):
    """The person: `<channel>:<user_id>`."""

    person: PersonName


class Remembered(Struct):
    """The data that the bot stores of a person: its variables, and its answers to forms."""

    person: str
    variables: Mapping[str, Any]
    forms: Mapping[str, Mapping[str, Any]]


class FormList(Struct):
    """The names of the forms with answers."""

    forms: Sequence[str]


class FormRow(Struct):
    """The answers of one person: question → answer. `person`: `<channel>:<user_id>`; `first`, `last`: when."""

    person: str
    first: str
    last: str
    answers: Mapping[str, Any]


class FormTable(Struct):
    """A page of a form. `columns`: the questions, in their order. `next`: the cursor of the next page."""

    form: str
    columns: Sequence[str]
    rows: Sequence[FormRow]
    next: str | None

    @classmethod
    def of(cls, table: Any) -> "FormTable":
        rows = [FormRow(one.person, write_time(one.first), write_time(one.last), one.answers) for one in table.rows]
        return cls(table.form, table.columns, rows, table.next)
