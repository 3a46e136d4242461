"""bench queue --beside bullmq: the side of Ada runs and its figures are plausible; BullMQ itself needs npm."""

import json

import pytest

from bench.harness.report import Rows
from bench.queue.bullmq.ada_program import Workload, body
from bench.queue.bullmq.comparison import (
    BYTES,
    P50,
    P99,
    TARGETS,
    WITH,
    WITHOUT,
    BullmqTarget,
    Figures,
    check_lines,
    measure_round,
    show,
)
from bench.queue.bullmq.systems import BULLMQ, reason
from cli.command import FAILURE, CommandFailed
from cli.main import main


async def test_a_round_measures_puts_work_and_latency_on_a_plain_server() -> None:
    (figures,) = (await measure_round([WITH], Workload(count=200, warm_up=20, latency_s=0.2))).values()
    assert set(figures) == set(TARGETS)
    assert all(value > 0 for value in figures.values())
    assert 100 < figures[BYTES] < 3000
    assert figures[P50] <= figures[P99]


def test_every_body_is_json_of_200_characters() -> None:
    for number in (0, 19_999):
        assert len(body(number)) == 200
        assert json.loads(body(number))["number"] == number


@pytest.mark.parametrize("numbers", [[0, 1], [0, 1, 1, 2], [0, 1, 3]])
def test_a_lost_or_repeated_task_fails_the_measurement(numbers: list[int]) -> None:
    with pytest.raises(CommandFailed, match="of 3 tasks were handled"):
        check_lines(numbers, 3, lanes=False)


def test_a_wrong_order_within_a_lane_fails_the_measurement() -> None:
    check_lines([10, 0, 11, *range(1, 10)], 12, lanes=True)
    with pytest.raises(CommandFailed, match="not handled in the order"):
        check_lines([1, 0, *range(2, 12)], 12, lanes=True)
    check_lines([1, 0, *range(2, 12)], 12, lanes=False)


def test_the_table_shows_medians_ranges_and_the_ratio_within_the_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    def figures(value: float) -> Figures:
        return dict.fromkeys(TARGETS, value)

    rounds = [{WITH.name: figures(own), WITHOUT.name: figures(8), BULLMQ: figures(2)} for own in (2, 6, 4)]
    show(Rows(as_json=True), rounds)
    first, second, *_ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["ada"], first["ada_min"], first["ada_max"], first["bullmq"]) == (4, 2, 6, 2)
    assert (first["ratio"], second["ratio"], first["wanted"]) == (2.0, 4.0, "≥ 1.3 ×")


def test_a_target_is_a_ratio_or_a_figure_of_ada() -> None:
    assert (str(BullmqTarget(1.5)), str(BullmqTarget(400, "≤", absolute=True))) == ("≥ 1.5 ×", "≤ 400")
    assert [BullmqTarget(1.5).is_met(value) for value in (1.49, 1.5)] == [False, True]
    assert [BullmqTarget(1.0, "≤").is_met(value) for value in (1.0, 1.01)] == [True, False]


@pytest.mark.parametrize("missing", ["node", "npm"])
def test_without_node_the_command_fails_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == missing else "/bin/true")
    assert main(["bench", "queue", "--beside", "bullmq"]) == FAILURE
    assert f"{missing} is not on this machine" in capsys.readouterr().err.splitlines()[-1]


def test_the_reason_of_npm_is_its_first_sentence() -> None:
    output = "npm warn old\nnpm error code ENOTFOUND\nnpm error network request to https://x failed\nnpm error more"
    assert reason(output) == "network request to https://x failed"
    assert reason("") == "no reason given"
