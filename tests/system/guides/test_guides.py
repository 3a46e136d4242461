"""Every command of every guide is run as it stands there, in the order of the guide, against a real `./ada up`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.system.guides.blocks import Unmarked, blocks_of
from tests.system.guides.reader import Reader, WrongGuide

IN_ONE_INSTALLATION = ("README.md", "docs/first-hour.md", "docs/directory.md")
"""What their commands add can be there side by side, in any order."""

pytestmark = pytest.mark.timeout(300)


def faults_of(page: str, reader: Reader) -> list[str]:
    """The first fault of the page, if it has one: what follows may rest on what failed."""
    try:
        for block in blocks_of(ROOT / page):
            try:
                reader.follow(block)
            except WrongGuide as wrong:
                return [f"{page}:{block.line}: {wrong}"]
    except Unmarked as unmarked:
        return [str(unmarked)]
    finally:
        reader.close()
    return []


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Reader]:
    """An `./ada up` without settings, as the guides begin."""
    first = Reader(tmp_path / "installation", {}, {"ADA_WEBHOOK_ALLOW_PRIVATE": "1"})
    first.run("./ada up")
    yield first
    first.close()


def test_the_commands_of_guides_for_one_installation_work_in_their_order(installation: Reader, tmp_path: Path) -> None:
    up, faults = installation.folder / "up.log", []
    for page in IN_ONE_INSTALLATION:
        faults += faults_of(page, Reader(tmp_path / Path(page).stem, {}, {}, up, installation.port))
    assert not faults, "\n".join(faults)
