"""The benchmarks in their short form: they run, and their rows have the keys that programs rely on. No timings.

`./ada test` runs two of them, `./ada prove benchmarks` all.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

import pytest

from bench import BENCHMARKS, functions_of
from bench.harness.measurements import cpu_seconds, process_tree, process_usage
from bench.harness.report import Rows, percentile
from cli.command import WRONG_USAGE
from cli.main import main
from tests.support.paths import ROOT

Row = dict[str, Any]


async def rows_of(capsys: pytest.CaptureFixture[str], name: str, *args: str) -> list[Row]:
    """Returns what `./ada bench NAME --json …` prints."""
    (declare, measure), parser = functions_of(name), ArgumentParser()
    declare(parser)
    await measure(parser.parse_args(args), Rows(as_json=True))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.long
async def test_lag_measures_ada_a_timer_and_expired(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "lag", "--pending", "0,200", "--count", "10", "--rounds", "2")
    each = ["ada", "timer", "ada", "timer", "expired"]
    assert [(row["system"], row["pending"]) for row in rows] == [(name, n) for n in (0, 200) for name in each]
    for row in rows:
        assert set(row) == {"system", "pending", "n", "p50_ms", "p99_ms", "max_ms", "arrived"}
        assert row["n"] == row["arrived"] == 10
        assert 0 <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]


async def test_enqueue_compares_one_by_one_and_bulk_with_a_bare_handler(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--lines", "20", "--people", "20", "--connections", "4")
    rows = await rows_of(capsys, "enqueue", "--seconds", "0.4", "--rounds", "1", *few)
    one_by_one = ["bare handler", "bare JSON", "one by one", "one client"]
    assert [row["system"] for row in rows] == [*one_by_one, "bulk", "one text to many", "personal texts"]
    assert all(row["deliveries_per_s"] > 0 for row in rows)
    assert rows[0]["to_bare"] == 1.0


@pytest.mark.long
async def test_durability_compares_replica_with_local(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "durability", "--seconds", "0.4", "--rounds", "1", "--connections", "4")
    expected = [("local", 4), ("local", 1), ("replica", 4), ("replica", 1)]
    assert [(row["durability"], row["clients"]) for row in rows] == expected
    assert all(row["deliveries_per_s"] > 0 for row in rows)


@pytest.mark.long
async def test_deliver_counts_the_http_calls_to_vk(capsys: pytest.CaptureFixture[str]) -> None:
    """2,501 recipients take two requests."""
    rows = await rows_of(capsys, "deliver", "--channel", "vk", "--recipients", "2501")
    assert [(row["system"], row["http_calls"]) for row in rows] == [("1 courier", 2), ("2 couriers", 2)]
    assert all(row["scripts_per_message"] < 0.01 for row in rows)


@pytest.mark.long
async def test_deliver_compares_telegram_with_loops_over_the_same_library(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "deliver", "--channel", "telegram", "--recipients", "150", "--rounds", "1")
    assert [row["system"] for row in rows] == ["bare loop", "bare requests", "1 courier", "2 couriers"]
    assert all(row["n"] == 150 and row["messages_per_s"] > 0 and row["to_bare"] > 0 for row in rows)


@pytest.mark.long
async def test_idle_reports_each_process_and_their_total(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "idle", "--seconds", "1")
    named = [row["process"] for row in rows]
    assert named[-1] == "all"
    assert {"serve", "courier telegram", "courier vk", "courier sms"} < set(named)
    assert rows[-1]["commands_per_s_each"] >= 0


async def test_memory_reports_bytes_by_letters_and_channels(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "memory", "--count", "1000")
    assert [(row["text"], row["channels"]) for row in rows] == [
        ("ascii", 1), ("ascii", 3), ("cyrillic", 1), ("cyrillic", 3)
    ]  # fmt: skip
    assert all(500 < row["bytes"] < 3000 for row in rows)


@pytest.mark.long
async def test_console_compares_open_consoles_with_none(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "console", "--tasks", "500", "--seconds", "3")
    assert [(row["consoles"], row["pending"]) for row in rows] == [(0, 500), (20, 500)]
    assert rows[0]["reads_per_s"] == 0 < rows[1]["reads_per_s"]
    assert all(row["ping_p50_ms"] > 0 and row["valkey_percent"] >= 0 for row in rows)


@pytest.mark.long
async def test_queue_claim_reports_each_situation_between_two_empty_ones(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "queue", "claim", "--short")
    assert [row["beside"] for row in rows] == [
        "nothing else", "1 locked lanes", "100 locked lanes", "1,000 locked lanes", "5,000 deferred tasks",
        "1,000 tasks of one lane", "nothing else, again",
    ]  # fmt: skip
    assert rows[0]["to_nothing"] == 1.0
    assert all(row["claim_us"] > 0 and row["settle_us"] > 0 and row["client_p99_ms"] > 0 for row in rows)


@pytest.mark.long
async def test_queue_due_reports_script_and_ping_times(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "queue", "due", "--short")
    assert [row["n"] for row in rows] == [200, 2000]
    for row in rows:
        assert row["ready_per_s"] >= row["done_per_s"] > 0
        assert row["longest_script_ms"] > 0
        assert row["ping_p50_ms"] <= row["ping_p99_ms"] <= row["ping_max_ms"]


@pytest.mark.long
async def test_queue_cancel_reports_the_latency_of_other_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "queue", "cancel", "--short")
    shown = [(row["state"], row.get("others")) for row in rows]
    assert shown == [(state, others) for state in ("locked", "waiting") for others in (None, "before", "meanwhile")]
    assert all(row["latency_p99_ms"] > 0 for row in rows if row.get("others"))


@pytest.mark.long
async def test_queue_memory_names_what_is_left_by_a_drain(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "queue", "memory", "--short")
    assert all(300 < row["bytes"] < 3000 for row in rows if "task" in row)
    drain = {row["moment"]: row for row in rows if "moment" in row}
    assert list(drain) == ["before", "full", "drained"]
    assert drain["full"]["keys"] > 1000
    left = {row["left"] for row in rows if "left" in row}
    assert {"queue:{0}:counters", "queue:{0}:states"} <= left
    assert len(left) == drain["drained"]["keys"] < 20


@pytest.mark.long
async def test_queue_rates_are_compared_with_a_trivial_script(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "queue", "rates", "--short")
    assert [row["system"] for row in rows] == [
        "trivial script, raw", "trivial script, redis-py", "put by 32 callers", "put in bulks of 1,000",
        "done by 1 worker, ten to a lane", "done by 2 workers, ten to a lane",
        "done by 1 worker, no lanes", "done by 2 workers, no lanes",
    ]  # fmt: skip
    assert all(row["tasks_per_s"] > 0 and row["to_redis_py"] > 0 for row in rows[2:])


@pytest.mark.long
async def test_queue_latency_counts_tasks_after_the_first_half_second(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = await rows_of(capsys, "queue", "latency", "--short")
    assert row["n"] > 0
    assert 0 < row["latency_p50_ms"] <= row["latency_p99_ms"] <= row["latency_max_ms"]


@pytest.mark.long
async def test_queue_audit_reads_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = await rows_of(capsys, "queue", "audit", "--short")
    assert (row["part"], row["n"]) == ("audit", 1000)
    assert row["seconds"] > 0


@pytest.mark.long
async def test_cluster_compares_three_primaries_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    one, three = await rows_of(capsys, "cluster", "--tasks", "400", "--rounds", "1")
    assert (one["primaries"], three["primaries"], one["to_one"]) == (1, 3, 1.0)
    assert one["busiest_us_per_task"] == one["cpu_us_per_task"] > 0
    assert 0 < three["busiest_us_per_task"] < three["cpu_us_per_task"]
    assert three["capacity_per_s"] > 0


@pytest.mark.long
async def test_people_reports_import_expansion_and_quotas(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "people", "--short")
    parts = ("import", "expansion", "quota")
    imported, expanded, sent = ([row for row in rows if row["part"] == part] for part in parts)
    assert [(row["people"], row["n"]) for row in imported] == [("new", 500), ("existing", 500)]
    assert all(row["people_per_s"] > 0 and row["ping_p99_ms"] > 0 for row in imported)
    assert [(row["recipients"], row["enqueue_scripts"]) for row in expanded] == [
        ("inline people", 1),
        ("supergroup", 1),
    ]
    assert expanded[0]["reads"] < expanded[1]["reads"] < 50
    assert [(row["sender"], row["to_no_role"] > 0) for row in sent] == [
        ("no role", True), ("quota", True), ("no role, directory asked", True), ("quota, directory asked", True)
    ]  # fmt: skip


async def test_scenarios_report_the_cost_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = await rows_of(capsys, "scenarios", "--short", "steps")
    assert (few["stored_runs"], many["stored_runs"]) == (0, 100)
    assert many["scripts_per_step"] <= 2  # without those of an idle process, which a short run counts badly
    assert many["commands_per_step"] < 20


async def test_scenarios_report_how_long_people_wait_for_the_dialog_of_teachers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = await rows_of(capsys, "scenarios", "--short", "teacher")
    assert [(row["written"], row["n"]) for row in rows] == [("/start", 20), ("/help", 20), ("/select", 20)]
    assert all(0 < row["reply_p50_ms"] <= row["reply_p99_ms"] for row in rows)


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_scenarios_are_compared_with_a_bare_aiogram_bot(capsys: pytest.CaptureFixture[str]) -> None:
    rows = await rows_of(capsys, "scenarios", "--short", "latency", "rate", "waiting")
    latency, rate, waiting = ([row for row in rows if row["part"] == part] for part in ("latency", "rate", "waiting"))
    assert [(row["system"], row["send"]) for row in latency] == [
        ("bare aiogram", "1"), ("bare aiogram", "5"), ("ada", "1"), ("ada", "5")
    ]  # fmt: skip
    assert all(row["n"] == 20 and 0 < row["request_p50_ms"] <= row["request_p99_ms"] for row in latency)
    assert [(row["system"], row["updates_per_s"] > 0) for row in rate] == [("bare aiogram", True), ("ada", True)]
    assert [row["runs"] for row in waiting] == [0, 50]


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_jobs_report_bytes_idle_cpu_lateness_and_what_follows_a_kill(capsys: pytest.CaptureFixture[str]) -> None:
    none, weighed, idle, lateness, takeover, *answers = await rows_of(capsys, "jobs", "--short")
    assert (none["idle_jobs"], idle["idle_jobs"]) == (0, 60)
    assert min(weighed["job_bytes"], weighed["job_log_bytes"], weighed["task_bytes"]) > 0
    assert 0 <= lateness["late_p50_ms"] <= lateness["late_p99_ms"] <= lateness["late_max_ms"]
    assert takeover["held"] > 1
    assert takeover["run_again_s"] > 0
    assert [row["jobs"] for row in answers] == ["none", "under load", "a process killed", "all killed"]
    assert all(row["n"] == 30 and 0 < row["answer_p50_ms"] <= row["answer_p99_ms"] for row in answers)
    assert all(row["held"] > 1 and row["run_again_s"] > 0 for row in answers[2:])


def test_the_program_of_arq_and_saq_imports_nothing_that_their_environment_does_not_have() -> None:
    words = "import sys, bench.peer_program; print(*{name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"redis", "bench"} <= set(found.split())
    assert not {"cli", "core", "msgspec", "couriers"} & set(found.split())


def test_an_unknown_part_or_peer_is_wrong_usage() -> None:
    for args in (
        ["queue", "luck"],
        ["scenarios", "luck"],
        ["queue", "--beside", "celery"],
        ["people", "luck"],
        ["jobs", "luck"],
    ):
        assert main(["bench", *args]) == WRONG_USAGE


def test_every_benchmark_has_a_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    for name in BENCHMARKS:
        with pytest.raises(SystemExit) as ended:
            main(["bench", name, "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out


def test_an_unknown_benchmark_is_wrong_usage() -> None:
    assert main(["bench", "luck"]) == WRONG_USAGE


@pytest.mark.parametrize(("share", "wanted"), [(0.01, 1), (0.5, 50), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_one_of_the_measured_values(share: float, wanted: int) -> None:
    assert percentile(range(100, 0, -1), share) == wanted


def test_different_columns_start_a_new_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(as_json=False)
    rows.show({"a": 1})
    rows.show({"a": 2000})
    rows.show({"b": 1.5, "c": None})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a"], ["1"], ["2,000"], [], ["b", "c"], ["1.50", "-"]
    ]  # fmt: skip


def test_cpu_and_descendants_of_a_process_are_found() -> None:
    found, own = process_usage(), os.getpid()
    assert own in process_tree(os.getppid(), found)
    assert cpu_seconds(own) > 0
