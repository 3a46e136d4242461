"""The account that several files of tests share."""

from collections.abc import Iterator, Mapping
from functools import partial

import pytest

from cli.processes.supervisor import read_announcement
from tests.cli.installation import Installation, new_installation
from tests.support.waiting import await_sync


@pytest.fixture(scope="session")
def sms_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The settings of an SMS gateway, which a sandbox of its own simulates.

    With them `./ada up` starts no sandbox, no bots and one courier: a tenth of the CPU time of a start with all
    channels.
    """
    for sandbox in new_installation(tmp_path_factory.mktemp("sms")):
        sandbox.start("sandbox", "--json")
        settings = await_sync(partial(settings_of, sandbox), within=150, what=f"the sandbox ({sandbox.log})")
        yield {name: value for name, value in settings.items() if name.startswith("ADA_SMS_")}


def settings_of(sandbox: Installation) -> dict[str, str]:
    """Return what the sandbox announces; empty until it is ready."""
    found = [read_announcement(line) for line in sandbox.log.read_text().splitlines()]
    return next((announced["environment"] for announced in found if announced), {})
