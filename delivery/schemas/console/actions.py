"""The types of the action log."""

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.admission import actions
from delivery.schemas.requests import Name, RequestModel, Time

ActionCursor = Annotated[
    str,
    Meta(min_length=3, max_length=64, pattern="^[1-9][0-9]{0,14}-[0-9]{1,15}$", extra={"pattern": "CURSOR_MALFORMED"}),
]


class ActionQuery(RequestModel, frozen=True):
    """Which actions. `what`: the beginning, such as DELETE or POST /v1/queue."""

    who: Name | UnsetType = UNSET
    what: Name | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    cursor: ActionCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class ActionView(Struct):
    """One change: who made it by which way, what it was, of how many things, and why."""

    id: str
    at: datetime
    who: str
    name: str
    via: str
    what: str
    target: str
    count: int
    why: str

    @classmethod
    def of(cls, entry: actions.LoggedAction) -> "ActionView":
        one = entry.action
        return cls(entry.id, entry.at, one.who, one.name, one.via, one.what, one.target, one.count, one.why)


class ActionPage(Struct):
    """The newest first. `next`: the cursor of the next page."""

    actions: list[ActionView]
    next: str | None
