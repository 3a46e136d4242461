"""The verdict on books and histories with errors: each error is found."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.vacancies import Application
from tests.jobs.soak.append_only_file import Write, read_writes
from tests.jobs.soak.job_histories import JobHistory, findings_of, histories
from tests.jobs.soak.people import Pause
from tests.jobs.soak.verdict import Recorded, book_findings, pause_findings, repeats, resume_findings, round_findings

PORT, LEASE = 4000, 2.0
APPLIED = Application("user-1", "v1", PORT, 100.0, is_repeat=False)
REPEAT = replace(APPLIED, at=110.0, is_repeat=True)
RECORD: dict[str, object] = {"state": "running", "generation": 1, "task": "0.a"}


Step = Mapping[str, object] | tuple[str, str]


def history(*steps: Step) -> JobHistory:
    """Of records, as changes of the one before, and of (item or effect, status; "" if it is removed)."""
    record = RECORD
    writes = []
    for offset, step in enumerate(steps):
        words = ["hdel", "job-units:{0}:default/hunt.1"]
        if not isinstance(step, tuple):
            record = {**record, **step}
            words = ["hset", "job:{0}:default/hunt.1", "record", json.dumps(record)]
        elif step[1]:
            words = ["hset", "job-units:{0}:default/hunt.1", step[0], json.dumps({"status": step[1]})]
        else:
            words.append(step[0])
        writes.append(Write(offset, tuple(words)))
    return histories(writes)["hunt.1"]


BEGUN, DONE, UNIT = ("effect:apply v1", "begun"), ("effect:apply v1", "done"), ("unit:v1", "done")
BEGIN: Step = {"begun": True}
END: Step = {"begun": False, "iteration": 1, "task": "0.b"}
WHOLE: tuple[Step, ...] = ({}, BEGIN, BEGUN, DONE, UNIT, END)


def book(*applications: Application, steps: tuple[Step, ...] = WHOLE) -> list[str]:
    return book_findings(applications, {1: Recorded.of(history(*steps))})


def test_a_whole_iteration_has_no_findings() -> None:
    assert findings_of(history(*WHOLE), []) == []
    assert book(APPLIED) == []


def test_an_application_that_was_stored_twice_is_found() -> None:
    assert book(APPLIED, APPLIED) == ["user-1 has applied to v1 2 times"]


def test_an_application_that_is_missing_is_found() -> None:
    assert book() == ["hunt.1: v1 is done, and the service has no application"]


def test_an_application_that_is_not_recorded_is_found() -> None:
    assert book(APPLIED, replace(APPLIED, vacancy="v2")) == [
        "hunt.1: the service has an application to v2, which is not recorded"
    ]


def test_an_application_that_is_still_open_is_found() -> None:
    assert "hunt.1: v1 is neither done nor unknown" in book(APPLIED, steps=WHOLE[:3])


@pytest.mark.parametrize("applications", [(), (APPLIED,)])
def test_an_unknown_application_may_exist_once_or_not_at_all(applications: tuple[Application, ...]) -> None:
    unknown = ("effect:apply v1", "unknown"), ("unit:v1", "unknown")
    assert book(*applications, steps=({}, BEGIN, BEGUN, *unknown, END)) == []


def test_a_vacancy_that_only_others_have_applied_to_is_found() -> None:
    recorded = {user: Recorded.of(history(*steps)) for user, steps in ((1, WHOLE), (2, ({},)))}
    assert book_findings([APPLIED], recorded) == ["hunt.2: v1 was never applied to"]


def test_a_repeated_call_is_excused_only_for_a_process_that_was_frozen_beyond_the_lease() -> None:
    assert repeats([APPLIED, REPEAT], {}, LEASE) == (["user-1 applied again to v1"], 0)
    assert repeats([APPLIED, REPEAT], {PORT: [(109.0, 109.9)]}, LEASE) == (["user-1 applied again to v1"], 0)
    assert repeats([APPLIED, REPEAT], {PORT: [(101.0, 109.9)]}, LEASE) == ([], 1)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((*WHOLE, END), id="one iteration ends twice"),
        pytest.param((*WHOLE, BEGIN, END), id="an earlier iteration ends after the next one has begun"),
        pytest.param((*WHOLE, {"begun": True, "iteration": 0}), id="an iteration begins again after its end"),
        pytest.param(({}, BEGIN, {"iteration": 2, "begun": False}), id="an iteration is skipped"),
        pytest.param(({}, {"task": "0.b"}), id="a job had lost its task"),
        pytest.param((*WHOLE, UNIT), id="an item is recorded twice"),
        pytest.param((*WHOLE, BEGUN), id="an effect is begun again after its end"),
        pytest.param((*WHOLE, ("effect:apply v1", "")), id="an effect is removed after its end"),
    ],
)
def test_a_step_that_may_not_happen_is_found(steps: tuple[Step, ...]) -> None:
    assert len(findings_of(history(*steps), [])) == 1


def test_a_write_may_be_repeated_over_a_kill_of_the_server() -> None:
    assert findings_of(history(*WHOLE[:5], UNIT), [5]) == []
    assert findings_of(history(*WHOLE[:4], BEGUN), [4]) != [], "not with another result"
    assert findings_of(history(*WHOLE[:5], UNIT), [1_000_000]) != [], "not long before"


def test_after_a_pause_only_the_item_in_hand_is_done() -> None:
    paused: Step = {"state": "paused", "paused_by": "user", "generation": 2}
    second = ("effect:apply v2", "begun")
    assert findings_of(history({}, BEGIN, paused, BEGUN, DONE, UNIT), []) == []
    assert findings_of(history({}, BEGIN, paused, BEGUN, DONE, UNIT, second), []) == [
        "hunt.1: effect:apply v2 was begun while the job was paused"
    ]
    later = [replace(APPLIED, vacancy=f"v{number}", at=200.0 + number) for number in range(2)]
    assert pause_findings(later, [Pause(1, 150.0)]) == ["hunt.1 applied 2 times after it was paused"]
    assert pause_findings(later, [Pause(1, 150.0, end=199.0), Pause(1, 200.5)]) == []


def test_a_pause_that_ends_without_the_user_is_found() -> None:
    paused: Step = {"state": "paused", "paused_by": "user", "generation": 2}
    resumed = {1: history({}, paused, {"state": "running", "generation": 3})}
    assert resume_findings(resumed, {1: 1}) == []
    assert resume_findings(resumed, {}) == [
        "hunt.1 went on 1 times after the user's pause, and the user let it 0 times"
    ]


def test_the_append_only_file_is_read_with_its_offsets(tmp_path: Path) -> None:
    first, second = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nv\r\n*\r\n", b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
    (tmp_path / "file").write_bytes(first + b"#TS:1\r\n" + second)
    assert list(read_writes(tmp_path / "file")) == [
        Write(0, ("set", "k", "v\r\n*")),
        Write(len(first) + 7, ("del", "k")),
    ]


NAMES = ("before 0", "branch 0", "later 0", "leg 0", "after 0 1", "ticket 1")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({("1", "leg 0"): ["k", "k"]}, []),
        ({("1", "leg 0"): ["k", "other"]}, ["round.1: 'leg 0' took place with 2 keys"]),
        ({("1", "ticket 1"): None}, ["round.1: 'ticket 1' is missing"]),
        ({("1", "after 0 1"): None, ("1", "after 0 2"): ["k"]}, ["'after 0 1' is missing", "'after 0 2' is too much"]),
        ({("1", "before 1"): ["k"]}, []),
        ({("1", "ticket 2"): ["k"]}, ["round.1: 'ticket 2' is too much"]),
    ],
)
def test_what_a_round_has_lost_or_done_twice_is_found(
    change: dict[tuple[str, str], list[str] | None], found: list[str]
) -> None:
    stored = {**{("1", name): ["k"] for name in NAMES}, **change}
    keys = {call: of for call, of in stored.items() if of}
    findings = round_findings(keys, {1: 1}, {1: 1})
    assert len(findings) == len(found)
    assert all(what in finding for what, finding in zip(found, findings, strict=True))
