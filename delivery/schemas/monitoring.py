"""Requests and responses about the whole installation."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from delivery.schemas.requests import Name, RequestModel, TaskCursor, Time


class FigureQuery(RequestModel, frozen=True):
    """The time from which and until which figures are read; without one, all that is kept of this step."""

    begin: Time | UnsetType = field(name="from", default=UNSET)
    end: Time | UnsetType = field(name="to", default=UNSET)
    step: (
        Annotated[
            int,
            Meta(
                ge=10,
                le=86_400,
                description="seconds between two points; below 600 only the last hour is kept, else seven days. "
                "Without it the finest that is kept since `from`",
            ),
        ]
        | UnsetType
    ) = UNSET
    tube: Name | UnsetType = UNSET


class LaneQuery(RequestModel, frozen=True):
    """Of which tube, and how many lanes."""

    tube: Name | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class LanePageQuery(RequestModel, frozen=True):
    """The page of a lane."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
