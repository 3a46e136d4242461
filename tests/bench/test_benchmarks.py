"""The benchmarks in their short form: they run, and their rows have the shape that programs rely on. No timings."""

import json
import os
from argparse import ArgumentParser
from importlib import import_module
from typing import Any

import pytest

from bench.cost import cpu_of, tree, usage
from bench.rows import Rows, percentile
from cli.bench import BENCHMARKS
from cli.main import main

Row = dict[str, Any]


async def rows_of(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> list[Row]:
    """What `./ada bench NAME --json …` prints."""
    module, parser = import_module(f"bench.{name}"), ArgumentParser()
    module.declare(parser)
    await module.measure(parser.parse_args(words), Rows(as_json=True))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


async def test_lag_tells_ada_and_expired_for_each_number_of_pending(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "lag", "--pending", "0,200", "--count", "10")
    assert [(row["system"], row["pending"]) for row in rows] == [
        ("ada", 0),
        ("expired", 0),
        ("ada", 200),
        ("expired", 200),
    ]
    for row in rows:
        assert set(row) == {"system", "pending", "n", "p50_ms", "p99_ms", "max_ms", "arrived"}
        assert row["n"] == row["arrived"] == 10
        assert 0 <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]


async def test_enqueue_compares_one_by_one_and_bulk_with_a_bare_handler(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "enqueue", "--seconds", "0.4", "--rounds", "1", "--lines", "20", "--connections", "4")
    assert [row["system"] for row in rows] == ["bare handler", "one client", "one by one", "bulk"]
    assert all(row["deliveries_per_s"] > 0 for row in rows)
    assert rows[0]["to_bare"] == 1.0


@pytest.mark.row("D-21")
async def test_deliver_counts_the_calls_that_vk_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """2,501 recipients are one request and one more."""
    rows = await rows_of(capsys, "deliver", "--channel", "vk", "--recipients", "2501")
    assert [(row["system"], row["http_calls"]) for row in rows] == [("1 courier", 2), ("2 couriers", 2)]
    assert all(row["scripts_per_message"] < 0.01 for row in rows)


async def test_deliver_compares_telegram_with_loops_over_the_same_library(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "deliver", "--channel", "telegram", "--recipients", "150")
    assert [row["system"] for row in rows] == ["bare loop", "bare requests", "1 courier", "2 couriers"]
    assert all(row["n"] == 150 and row["messages_per_s"] > 0 and row["to_bare"] > 0 for row in rows)


async def test_idle_tells_each_process_and_all_together(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "idle", "--seconds", "1")
    named = [row["process"] for row in rows]
    assert named[-1] == "all"
    assert {"serve", "courier telegram", "courier vk", "courier sms"} < set(named)
    assert rows[-1]["commands_per_s_each"] >= 0


async def test_memory_tells_bytes_by_letters_and_channels(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "memory", "--count", "1000")
    assert [(row["text"], row["channels"]) for row in rows] == [
        ("ascii", 1), ("ascii", 3), ("cyrillic", 1), ("cyrillic", 3)
    ]  # fmt: skip
    assert all(500 < row["bytes"] < 3000 for row in rows)


def test_every_benchmark_is_offered_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    for name in BENCHMARKS:
        with pytest.raises(SystemExit) as ended:
            main(["bench", name, "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out


def test_an_unknown_benchmark_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "luck"])
    assert ended.value.code == 2


@pytest.mark.parametrize(("share", "wanted"), [(0.01, 1), (0.5, 50), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_a_value_that_was_measured(share: float, wanted: int) -> None:
    assert percentile(range(100, 0, -1), share) == wanted


def test_a_table_begins_anew_with_other_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(as_json=False)
    rows.show({"a": 1})
    rows.show({"a": 2000})
    rows.show({"b": 1.5, "c": None})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a"], ["1"], ["2,000"], [], ["b", "c"], ["1.50", "-"]
    ]  # fmt: skip


def test_cpu_is_told_of_a_process_and_of_what_it_started() -> None:
    found, own = usage(), os.getpid()
    assert own in tree(os.getppid(), found)
    assert cpu_of(own) > 0
