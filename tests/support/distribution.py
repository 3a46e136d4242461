"""Which tests run on the same pytest worker, and which begin first."""

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/cli", "tests/delivery/console")
"""The tests of each of these folders share an installation that is up. Its start takes as long as hundreds of tests."""

FIRST = (*TOGETHER, "tests/system", "tests/scenarios/teacher")
"""The longest: at the end all workers have short tests left, so that none runs alone."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a free worker the next file, or the next folder of `TOGETHER`: its fixtures are made once."""

    def _split_scope(self, nodeid: str) -> str:  # xdist's own schedulers differ in this method alone
        return folder_of(nodeid, TOGETHER) or super()._split_scope(nodeid)


def folder_of(nodeid: str, folders: tuple[str, ...]) -> str | None:
    return next((folder for folder in folders if nodeid.startswith(f"{folder}/")), None)


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts tests in place; those of one folder keep their order."""
    order = {folder: place for place, folder in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(folder_of(item.nodeid, FIRST) or "", len(FIRST)))
