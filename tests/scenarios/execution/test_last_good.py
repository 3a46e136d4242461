"""While the folder of a bot has mistakes, its last good version is in force, also after a restart."""

import shutil

import pytest

from tests.scenarios.execution.conftest import WITHIN, Installation
from tests.support.waiting import until

GOOD = "    - {type: send, text: %s}\n"
BROKEN = "    - {type: sned, text: broken}\n    - {type: send, text: broken}\n"


async def test_after_a_restart_the_last_good_version_is_in_force_until_the_mistakes_are_corrected(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    first = await installation.actions(GOOD % "good").start()
    await first.stop()
    for number in range(2):  # the restored version is the last good one again
        running = await installation.actions(BROKEN + f"    # {number}\n").start()
        await installation.play()
        await running.stop()
    assert installation.texts == ["good", "good"]
    assert "s.yaml:3:14: UNKNOWN_ACTION" in caplog.text
    assert "the last good version" in caplog.text
    await installation.actions(GOOD % "corrected").start()
    await installation.play()
    assert installation.texts[2:] == ["corrected"]


async def test_a_version_that_became_good_while_the_process_ran_is_the_last_good_one(
    installation: Installation,
) -> None:
    running = await installation.actions(GOOD % "first").start()
    installation.actions(GOOD % "second")
    await until(lambda: _answers(installation, "second"), within=WITHIN)
    await running.kill()
    await installation.actions(BROKEN).start()
    await installation.play()
    assert installation.texts[-1] == "second"


async def _answers(installation: Installation, text: str) -> bool:
    await installation.play()
    return installation.texts[-1] == text


async def test_the_last_good_version_of_another_folder_is_another_bots(installation: Installation) -> None:
    first = await installation.actions(GOOD % "one bot").start()
    await first.stop()
    installation.folder = shutil.copytree(installation.folder, installation.folder.with_name("another"))
    await installation.actions(BROKEN).start()
    await installation.play()
    assert installation.texts == ["broken"]
