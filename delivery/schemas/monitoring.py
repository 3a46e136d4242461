"""What operators ask and get about the whole installation."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from delivery.schemas.requests import Name, RequestModel, TaskCursor


class FigureQuery(RequestModel, frozen=True):
    """`fine`: the last hour in steps of ten seconds; `coarse`: the last seven days in steps of ten minutes."""

    step: Literal["fine", "coarse"] = "fine"
    tube: Name | UnsetType = UNSET


class LaneQuery(RequestModel, frozen=True):
    """Of which tube, and how many lanes."""

    tube: Name | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class LanePageQuery(RequestModel, frozen=True):
    """The page of a lane."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
