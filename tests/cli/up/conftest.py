"""The installation that the files of this folder share."""

from collections.abc import Iterator

import pytest

from tests.cli.installation import Installation, new_installation


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation that is up without a setting for quiet hours, shared by the tests that leave it up.

    A test uses people and addresses that no other test uses.
    """
    for installation in new_installation(tmp_path_factory.mktemp("running")):
        del installation.environment["ADA_QUIET_HOURS"]
        installation.up()
        yield installation
