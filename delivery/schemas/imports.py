"""The types of the CSV import: query and responses."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.requests import RequestModel

KindName = Literal["users", "contacts", "groups", "members", "supergroups", "ownerships"]


class ImportQuery(RequestModel, frozen=True):
    """What the rows are, and whether they are only checked."""

    kind: KindName
    dry_run: (
        Annotated[Literal["", "1", "true", "0", "false"], Meta(description="check only; the name alone means true")]
        | UnsetType
    ) = UNSET

    @property
    def only_checks(self) -> bool:
        return self.dry_run in ("", "1", "true")


class Imported(Struct):
    """How many rows of the file were new, and how many changed something that existed. `dry_run`: they would have."""

    created: int
    updated: int
    dry_run: bool


class ImportProgress(Struct):
    """The import of the tenant that is under way. `rows`: of the file; `done`: of them, in this state."""

    state: Annotated[str, Meta(description="idle, checking or writing")]
    kind: str
    rows: int
    done: int
