"""What a job stores is the same at the first run and after a crash, or refused when it is stored (U-35)."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf, nan
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import Invalid
from core.jobs.record import checked_parameters
from core.jobs.signals import checked_signal
from jobs import Iteration, Job, Schedule
from jobs.recording.guard import returned_form, stored_form
from jobs.recording.own_state import StateClass, difference
from jobs.testing import JobTest
from tests.support.hypothesis_settings import SETTINGS

MINUTE = timedelta(minutes=1)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.datetimes()
    | st.times() | st.timedeltas() | st.decimals() | st.uuids() | st.characters(categories=["Cs"])
)  # fmt: skip
KEYS = st.text() | st.integers() | st.floats() | st.dates() | st.booleans() | st.none() | st.binary()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner)
        | st.sets(st.integers() | st.text())
        | st.frozensets(st.dates())
    ),
    max_leaves=8,
)


@dataclass
class Anything:
    value: Any = None


@dataclass
class Typed:
    """A field for each type that JSON does not have itself."""

    day: date = date.min
    at: datetime = datetime(2030, 1, 7, tzinfo=UTC)
    hour: time = time.min
    price: Decimal = Decimal(0)
    key: UUID = field(default_factory=lambda: UUID(int=0))
    raw: bytes = b""
    names: set[str] = field(default_factory=set)
    pair: tuple[int, str] = (0, "")
    counts: dict[int, float] = field(default_factory=dict)


def _is_refused(store: Callable[[], Any]) -> bool:
    try:
        store()
    except Invalid:
        return True
    return False


@settings(SETTINGS, max_examples=200)
@given(VALUES)
def test_a_value_is_refused_or_no_value_of_it_is_lost(value: Any) -> None:
    """What reaches the job is what is stored. Read and stored once more it is the same, and state keeps its types."""
    ways: list[Callable[[Any], Any]] = [
        lambda one: returned_form("x", stored_form("x", one), Any),
        lambda one: checked_parameters({"x": one})["x"],
        lambda one: checked_signal("x", one, "", 0).data,
    ]
    is_refused = [_is_refused(lambda way=way: way(value)) for way in ways]  # type: ignore[misc]
    assert len(set(is_refused)) == 1
    states = StateClass(Anything, 1, lambda _, data: data)
    if is_refused[0]:
        assert _is_refused(lambda: states.dump(Anything(value)))
        return
    first = [way(value) for way in ways]
    assert [difference("x", one, first[0]) for one in first] == ["", "", ""]
    assert difference("x", first[0], ways[0](first[0])) == ""
    if not _is_refused(lambda: states.dump(Anything(value))):
        assert difference("x", states.load(states.dump(Anything(value))).value, value) == ""


@example(
    Typed(
        date(2030, 1, 7),
        price=Decimal("1.10"),
        raw=b"\xff",
        names={"a", "b"},
        pair=(1, "a"),
        counts={1: 0.5, -2: 1e300},
    )
)
@settings(SETTINGS, max_examples=50)
@given(st.builds(Typed, **{one.name: ... for one in fields(Typed)}))
def test_a_state_with_types_keeps_every_value(state: Typed) -> None:
    states = StateClass(Typed, 1, lambda _, data: data)
    if not _is_refused(lambda: states.dump(state)):
        assert states.load(states.dump(state)) == state


class Storing(Job):
    """Stores a value in one way, and notes what it gets at the first run and at each repetition."""

    name = "storing"
    schedule = Schedule()
    state = Anything
    most_failures = 1
    value: ClassVar[Any] = None
    got: ClassVar[list[Any]] = []

    async def run(self, iteration: Iteration) -> Any:
        way = iteration.parameters["way"]
        self.got.append(await getattr(self, way)(iteration))
        await iteration.sleep(MINUTE)
        return self.value if way == "result" else None

    async def step(self, iteration: Iteration) -> Any:
        return await iteration.step("call", _value)

    async def effect(self, iteration: Iteration) -> Any:
        return await iteration.effect("call", _value)

    async def progress(self, iteration: Iteration) -> Any:
        async def call() -> Any:
            await iteration.heartbeat(_the_value())
            return iteration.progress

        return await iteration.step("call", call)

    async def parameters(self, iteration: Iteration) -> Any:
        if "value" not in iteration.parameters:
            await iteration.change_parameters(value=self.value)
        return iteration.parameters["value"]

    async def own_state(self, iteration: Iteration) -> Any:
        async def handle(_: int) -> None:
            iteration.state.value = self.value

        await iteration.each([1], handle, key=str)
        return iteration.state.value

    async def result(self, iteration: Iteration) -> None: ...


async def _value() -> Any:
    return Storing.value


def _the_value() -> Any:
    return Storing.value


WAYS = ("step", "effect", "progress", "parameters", "own_state", "result")
REFUSED = [nan, inf, -inf, [{"price": nan}], {1: "a", "1": "b"}, "\ud83d", {(1, 2): 3}, object()]
TAKEN = [
    1.5, True, "ж", [1, [2.0]], {"a": None}, 2**70, date(2030, 1, 7), datetime(2030, 1, 7, 9, tzinfo=UTC),
    Decimal("1.10"), b"\xff", {3, 1, 2}, (1, "a"), {1: "a"}, UUID(int=1), MINUTE,
]  # fmt: skip
IN_JSON = TAKEN[:6]


@pytest.mark.parametrize("way", WAYS)
async def test_a_repetition_gets_what_the_first_run_got(way: str) -> None:
    async with JobTest.open(Storing) as test:
        for number, value in enumerate([*TAKEN, *REFUSED]):
            Storing.value, Storing.got = value, []
            job = f"storing~{number}.1"
            await test.start(job, {"way": way})
            await test.advance(2 * MINUTE)
            view = await test.job(job)
            is_taken = number < len(TAKEN) if way != "own_state" else number < len(IN_JSON)
            assert view.state == ("finished" if is_taken else "failed"), (way, value, view.reason)
            if is_taken:
                first, again = Storing.got
                assert difference("x", first, again) == "", (way, value)


@pytest.mark.parametrize("value", REFUSED)
async def test_a_signal_and_parameters_of_a_start_are_refused_when_they_are_given(value: Any) -> None:
    async with JobTest.open(Storing) as test:
        with pytest.raises(Invalid):
            await test.start("storing.1", {"way": "step", "value": value})
        await test.start("storing.1", {"way": "step"})
        with pytest.raises(Invalid):
            await test.signal("storing.1", "answer", value)
