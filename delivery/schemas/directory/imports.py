"""The types of the CSV import: query and responses."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from core.directory import importing
from delivery.schemas.requests import RequestModel

KindName = Literal["users", "contacts", "groups", "members", "supergroups", "ownerships"]
Encoding = Literal["utf-8", "utf-16", "windows-1251", "koi8-r", "mac-cyrillic", "cp866", "windows-1252"]


class ImportQuery(RequestModel, frozen=True):
    """The kind of the rows, and whether they are only checked."""

    kind: KindName
    dry_run: (
        Annotated[Literal["", "1", "true", "0", "false"], Meta(description="check only; the name alone means true")]
        | UnsetType
    ) = UNSET
    encoding: Annotated[Encoding, Meta(description="of the file; default: found out by its words")] | UnsetType = UNSET

    @property
    def only_checks(self) -> bool:
        return self.dry_run in ("", "1", "true")


class FieldChange(Struct):
    """A field that a row changes, its values as cells; "" for none."""

    field: str
    old: str
    new: str


class RowChange(Struct):
    """The change that a row makes. `id`: of the person, group or supergroup; `created`: whether that is new."""

    row: int
    id: str
    created: bool
    fields: list[FieldChange]


class Imported(Struct):
    """How many rows were about something new, changed what existed, or changed nothing. `dry_run`: they would have, and
    `changes` are the first of them; `more_changes`: how many others there are.
    """

    created: int
    updated: int
    unchanged: int
    dry_run: bool
    changes: list[RowChange]
    more_changes: int

    @classmethod
    def of(cls, result: importing.Imported, *, dry_run: bool) -> "Imported":
        changes = msgspec.convert(msgspec.to_builtins(result.changes), list[RowChange])
        more = result.created + result.updated - len(changes) if dry_run else 0
        return cls(result.created, result.updated, result.unchanged, dry_run, changes, more)


class ImportProgress(Struct):
    """The import of the tenant that is under way. `rows`: of the file; `done`: of them, in this state."""

    state: Annotated[str, Meta(description="idle, checking or writing")]
    kind: str
    rows: int
    done: int
