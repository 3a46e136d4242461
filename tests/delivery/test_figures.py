"""The figures over HTTP."""

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.main import main
from core.monitoring import SampleStep
from core.monitoring.figures import Samples
from core.queue import NewTask
from core.redis.store import Store
from tests.delivery.conftest import ADMIN, Api

MINUTE = 60_000


def query(**parameters: object) -> str:
    times = {"from": "begin", "to": "end"}
    given = {name: parameters.pop(key) for name, key in times.items() if key in parameters}
    texts = {name: f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z" for name, at in given.items()}  # type: ignore[operator]
    return "/v1/figures?" + "&".join(f"{name}={value}" for name, value in {**texts, **parameters}.items())


async def record(api: Api, store: Store, step: SampleStep, moments: range) -> None:
    """Takes a sample for each of these moments (Unix ms), and puts a task before each."""
    samples = Samples(store, api.services.core.queue)
    for at in moments:
        await api.services.core.queue.put_many("t", [NewTask("")])
        await samples.save(step, await samples.take(at))


async def test_figures_are_read_between_two_moments_in_steps(api: Api, store: Store) -> None:
    now = int(time.time()) * 1000
    start = now - now % MINUTE - 20 * MINUTE
    await record(api, store, SampleStep.FINE, range(start, start + 10 * MINUTE, 10_000))
    begin, end = start + 2 * MINUTE, start + 6 * MINUTE
    whole = (await api.call("GET", query())).json
    assert (whole["step"], len(whole["points"])) == (10, 60)
    part = (await api.call("GET", query(begin=begin, end=end, step=60))).json
    assert part["step"] == 60
    assert [point["at"] for point in part["points"]] == [begin, *range(begin + 50_000, end, MINUTE), end]
    assert [point["flow"]["put"] for point in part["points"][1:]] == [5, 6, 6, 6, 1]
    assert {point["ready"] for point in (await api.call("GET", query(tube="sms"))).json["points"]} == {0}
    assert (await api.call("GET", query(tube="smss"))).code == "TUBE_UNKNOWN"


async def test_the_command_figures_prints_what_the_api_returns_and_a_table(
    api: Api, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADA_HTTP", api.url.removeprefix("http://"))
    monkeypatch.setenv("ADA_API_KEY", ADMIN)
    now = int(time.time()) * 1000
    await record(api, store, SampleStep.FINE, range(now - 30 * MINUTE, now, 10_000))
    assert await asyncio.to_thread(main, ["figures", "--tube", "t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == (await api.call("GET", query(step=300, tube="t"))).json
    assert await asyncio.to_thread(main, ["figures"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[5] for line in lines[1:-1]] == ["30"] * (len(lines) - 2)


async def test_without_a_step_figures_have_the_finest_that_is_kept(api: Api, store: Store) -> None:
    now = int(time.time()) * 1000
    await record(api, store, SampleStep.COARSE, range(now - 120 * MINUTE, now, 10 * MINUTE))
    assert (await api.call("GET", query(begin=now - 50 * MINUTE))).json == {"step": 10, "points": [], "outcomes": []}
    older = (await api.call("GET", query(begin=now - 90 * MINUTE))).json
    assert (older["step"], len(older["points"])) == (600, 9)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [("step=5", "OUT_OF_RANGE"), ("step=fine", "WRONG_TYPE"), ("from=2026-11-23T10:00:00", "TIME_WITHOUT_ZONE"),
     ("until=2026-11-23T10:00:00Z", "UNKNOWN_PARAMETER")],
)  # fmt: skip
async def test_a_wrong_time_or_step_is_refused(api: Api, wrong: str, code: str) -> None:
    response = await api.call("GET", f"/v1/figures?{wrong}")
    assert (response.status, response.code) == (400, code)
