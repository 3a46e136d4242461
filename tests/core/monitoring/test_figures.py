"""The figures of operators: what is counted, who records it, and what is shown of it."""

import asyncio
from datetime import timedelta

import pytest

from core.model.states import Reason, Status
from core.monitoring import FigureReader, Recorder, SampleStep
from core.monitoring.figures import OutcomeCount
from core.queue import NewTask, SettleResult
from core.redis.keys import KEYS
from couriers.sending.interface import Outcome, Rejected, Unknown
from tests.support.every_verb import report_token
from tests.support.stack import HOUR, QUICK, FakeCourier, Stack, people, sent

SECOND = 1000


def now_of(stack: Stack) -> int:
    return int(stack.now().timestamp() * 1000)


async def counted(stack: Stack) -> dict[str, int]:
    found = await stack.store.command("HGETALL", KEYS["outcome_counts"].at(0))
    return {name: int(n) for name, n in found.items()}


async def test_every_outcome_is_counted_by_channel_status_and_reason(stack: Stack) -> None:
    ends: dict[str, Outcome] = {"p1": Rejected(Reason.BLOCKED), "p2": Unknown()}
    courier = FakeCourier(respond=lambda message: ends.get(message.address) or sent(message))
    await stack.courier(courier, QUICK)
    key = (await stack.deliver(*people(4, "echo"))).key
    await stack.finished(key)
    written = await counted(stack)
    assert written.pop("echo:sent|") == 2
    assert written.pop("echo:failed|blocked") == 1
    assert sum(n for name, n in written.items() if name.startswith("echo:unknown|")) == 1
    token = await report_token(stack, key, index=3)
    await stack.deliveries.record_report(token, Status.DELIVERED, "r")
    await stack.deliveries.record_report(token, Status.DELIVERED, "r")
    assert (await counted(stack))["echo:delivered|"] == 1
    await stack.deliver(*people(5, "other"), channels=("other",), expires_at=stack.now() + timedelta(minutes=1))
    stack.advance_clock(HOUR)
    await stack.tick()
    assert (await counted(stack))["other:expired|"] == 5
    await stack.audit()


async def test_one_process_takes_each_sample_and_what_was_not_recorded_is_a_gap(stack: Stack) -> None:
    recorders = [Recorder(stack.store, stack.queue) for _ in range(3)]
    reader, now = FigureReader(stack.store, stack.queue), now_of(stack)
    start = now - now % 600_000 - 590_000
    for n, seconds in enumerate((0, 10, 20, 300, 310)):
        await stack.queue.put_many("t", [NewTask("")] * (n + 1))
        taken = await asyncio.gather(*(one.record(start + seconds * SECOND) for one in recorders))
        assert sum(SampleStep.FINE in steps for steps in taken) == 1
    await stack.redis.hincrby(KEYS["outcome_counts"].at(0), "echo:failed|blocked", 7)
    (task,) = await stack.take()
    await stack.queue.settle(task, result=SettleResult.FAILED)
    await recorders[0].record(start + 320 * SECOND)
    fine = await reader.read(SampleStep.FINE)
    assert [point.flow.put if point.flow else None for point in fine.points] == [None, 2, 3, None, 5, 0]
    assert [point.ready for point in fine.points] == [1, 3, 6, 10, 15, 14]
    last = fine.points[-1].flow
    assert last
    assert (last.failed, last.not_reached, last.lag_ms) == (1, 7, None)
    assert fine.outcomes == [OutcomeCount("echo", "failed", "blocked", 7)]
    assert [point.at for point in (await reader.read(SampleStep.COARSE)).points] == [start]
    assert [point.ready for point in (await reader.read(SampleStep.FINE, "echo")).points] == [0] * 6
    assert (await reader.read(SampleStep.FINE, "t")).outcomes == []
    minutes = await reader.read(60)
    assert [(point.ready, point.flow and point.flow.put) for point in minutes.points] == [(1, None), (6, 5), (14, None)]
    part = await reader.read(SampleStep.FINE, begin=start + 10 * SECOND, end=start + 300 * SECOND)
    assert [point.ready for point in part.points] == [3, 6, 10]
    assert list(await reader.outcomes()) == fine.outcomes
    await stack.audit()


async def test_an_hour_is_kept_fine_and_the_rate_of_the_last_minute_is_known(stack: Stack) -> None:
    recorder, reader, now = Recorder(stack.store, stack.queue), FigureReader(stack.store, stack.queue), now_of(stack)
    first = now - now % 10_000 - 4000 * SECOND
    await recorder.record(first)
    assert await reader.rates() == {}
    await stack.queue.put_many("t", [NewTask("")] * 30)
    for seconds in (3940, 3960, 4000):
        await recorder.record(first + seconds * SECOND)
        if seconds == 3940:
            await stack.finish_all()
    assert await reader.rates() == {"t": 0.5}
    assert len((await reader.read(SampleStep.FINE)).points) == 3


async def flows(reader: FigureReader, tube: str = "") -> list[int | None]:
    return [point.flow.put if point.flow else None for point in (await reader.read(SampleStep.FINE, tube)).points]


async def test_beyond_a_hundred_tubes_each_task_is_counted_once_and_in_its_time(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a tube that came among the busiest hundred brought its whole history; one that left made a gap."""
    monkeypatch.setattr("core.monitoring.figures.TUBES", 2)
    recorder, reader, now = Recorder(stack.store, stack.queue), FigureReader(stack.store, stack.queue), now_of(stack)
    start = now - now % 600_000 - 590_000
    puts = [{"a": 9, "b": 8}, {"c": 10}, {"b": 5}, {}, {"a": 1}]
    for n, tubes in enumerate(puts):
        for tube, count in tubes.items():
            await stack.queue.put_many(tube, [NewTask("")] * count)
        await recorder.record(start + n * 10 * SECOND)
    assert await flows(reader) == [None, 10, 5, 0, 1]
    assert [point.ready for point in (await reader.read(SampleStep.FINE)).points] == [17, 27, 32, 32, 33]
    # Of one tube the samples are missing in which it is among the others.
    assert await flows(reader, "a") == [None, 0, None]
    assert await flows(reader, "c") == [None, 10, 0, 0]
