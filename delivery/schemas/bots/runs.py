"""The types about runs of scenarios."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.fields.timestamps import write_optional_time, write_time
from delivery.schemas.requests import Label, RequestModel, Time

T = TypeVar("T", bound=Struct)

PersonName = Annotated[str, Meta(pattern="^[a-z0-9-]{1,32}:.{1,128}$", description="channel:user_id")]
RunCursor = Annotated[str, Meta(pattern="^[0-9]{1,15}-[0-9]{1,5}\\.[0-9a-f]{1,64}$")]


class RunQuery(RequestModel, frozen=True):
    """The filter and the page of a list of runs. `person`: `<channel>:<user_id>`; `scenario`: the full name of a
    scenario that the event has started; `with_faults`: an action failed or is unknown.
    """

    person: PersonName | UnsetType = UNSET
    scenario: Label | UnsetType = UNSET
    state: Literal["running", "over", "dropped", "with_faults"] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    cursor: RunCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema={"default": 20})] | UnsetType = UNSET


class Action(Struct):
    """One action of a run. `n` counts from 1; `node`: its id in the graph. `cause`, `by` and `why`: what
    released or dropped it, the action that did, and both in words. `given`: its fields with placeholders replaced,
    `send`: the message of a `send`, `results`: what it returned; secrets are hidden in all of them. `waits_for`: the
    delivery for which a parked run waits, or `slow`. `translations`: language → `error` in it, if it is known.
    """

    n: int
    node: str
    scenario: str
    type: str
    place: str
    state: str
    cause: str | None
    by: int | None
    why: str
    moved_at: str | None
    ended_at: str | None
    error: str
    given: Mapping[str, Any]
    send: Mapping[str, Any] | None
    results: Mapping[str, Any]
    waits_for: str | None
    translations: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, view: Any) -> "Action":
        moved_at, ended_at = write_optional_time(view.moved_at), write_optional_time(view.ended_at)
        return _shown(cls, view, moved_at=moved_at, ended_at=ended_at)


class RunFacts(Struct):
    """The facts shown of every run. `state`: running, over or dropped. `version`: that of the bot's files with which it
    began.
    """

    id: str
    person: str
    state: str
    version: str
    scenarios: Sequence[str]
    began: str
    ended: str | None


class Run(RunFacts):
    """All actions that one event has started."""

    event: Mapping[str, Any]
    actions: Sequence[Action]

    @classmethod
    def of(cls, view: Any) -> "Run":
        return _shown(cls, view, **_times(view), actions=[Action.of(action) for action in view.actions])


class RunSummary(RunFacts):
    """A run in a list. `faults`: how many of its actions failed or are unknown. `text`: what the person wrote or
    pressed.
    """

    faults: int
    text: str

    @classmethod
    def of(cls, view: Any) -> "RunSummary":
        return _shown(cls, view, **_times(view))


class RunPage(Struct):
    """Runs, the newest first. `next`: the cursor of the next page; a page with one may be short, or empty."""

    runs: Sequence[RunSummary]
    next: str | None


def _shown(shape: type[T], view: Any, **changed: Any) -> T:
    """Return a `shape` with the fields of a view that have the same names, and with the changed ones."""
    same = {name: getattr(view, name) for name in shape.__struct_fields__ if name not in changed}
    return shape(**same, **changed)


def _times(view: Any) -> dict[str, str | None]:
    return {"began": write_time(view.began), "ended": write_optional_time(view.ended)}
