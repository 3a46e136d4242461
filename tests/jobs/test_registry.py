"""Classes and modules that are no jobs are refused when a process starts, and the message says why."""

from pathlib import Path

import pytest

from core.errors import SetupError
from jobs.registry import installed

COMPLETE = """
from datetime import timedelta
from jobs import Job, Limit, Schedule

class Hunt(Job):
    name = "hunt"
    schedule = Schedule(timedelta(hours=1))

    async def run(self, iteration):
        pass
"""


def write(folder: Path, name: str, source: str) -> str:
    (folder / name).write_text(source)
    return str(folder / name)


def test_the_jobs_of_a_file_are_found(tmp_path: Path) -> None:
    assert list(installed([write(tmp_path, "hunting.py", COMPLETE)]).kinds) == ["hunt"]


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("timedelta(hours=1)", "timedelta(0)", "A period is from one second to 366 days"),
        ("timedelta(hours=1)", "timedelta(days=3652)", "A period is from one second to 366 days"),
        ('name = "hunt"', "pass", "Hunt needs a `name` of the form .*; it has None"),
        ('name = "hunt"', 'name = "My hunt!"', "Hunt needs a `name` of the form .*; it has 'My hunt!'"),
        ("schedule = Schedule(timedelta(hours=1))", "pass", r"Hunt needs a `schedule = Schedule\(…\)`"),
        ("Schedule(timedelta(hours=1))", "timedelta(hours=1)", r"Hunt needs a `schedule = Schedule\(…\)`"),
        ("async def run", "def run", "`run` of the job .*Hunt needs to be `async def`"),
        ("class Hunt(Job)", "class Hunt", "defines no subclass of jobs.Job with a `run`"),
        ("class Hunt(Job):", "class Hunt(Job:", "cannot be imported: SyntaxError"),
        ("timedelta(hours=1)", "60", "line 7: TypeError: The period of a schedule must be a timedelta, for example"),
        ('name = "hunt"', 'name = "hunt"; max_runtime = 60', "Hunt: The max_runtime of a job must be a timedelta"),
        (
            "    schedule",
            '    limits = (Limit("shop", rate=1, per=60),)\n    schedule',
            "Hunt: The per of a limit must be a timedelta",
        ),
    ],
)
def test_a_file_whose_job_is_not_complete_is_refused(tmp_path: Path, line: str, instead: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        installed([write(tmp_path, "hunting.py", COMPLETE.replace(line, instead))])


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="there is no file"):
        installed([str(tmp_path / "hunting.py")])


def test_two_jobs_of_one_name_are_refused(tmp_path: Path) -> None:
    modules = [write(tmp_path, name, COMPLETE) for name in ("one.py", "two.py")]
    with pytest.raises(SetupError, match=r"two jobs have the name 'hunt': ada_jobs_one\.Hunt and ada_jobs_two\.Hunt"):
        installed(modules)
