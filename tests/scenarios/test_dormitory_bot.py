"""The dormitory sign-up of the examples: under 80 lines of YAML, free of mistakes, and its own tests pass."""

from examples import DORMITORY_BOT
from scenarios.check import check
from scenarios.testing.bot_tests import FOLDER, run_tests


async def test_the_dormitory_bot_passes_its_own_tests() -> None:
    checked = check(DORMITORY_BOT)
    verdicts, problems = await run_tests(DORMITORY_BOT, checked.bot)
    assert ([one for one in verdicts if one.problem], problems, checked.problems) == ([], [], ())
    assert len(verdicts) == 4
    files = [path for path in DORMITORY_BOT.rglob("*.yaml") if FOLDER not in path.parts]
    assert sum(len(path.read_text().splitlines()) for path in files) < 80
