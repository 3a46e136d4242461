"""The lock files work on every machine, and development uses the versions of the runtime."""

import re
import tomllib
from itertools import chain
from typing import Any

import pytest

from tests.support.paths import ROOT

LOCKS = ["requirements.lock", "requirements-dev.lock"]


def pinned(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def required_by(project: dict[str, Any]) -> list[str]:
    extras = project["project"]["optional-dependencies"].values()
    return [*project["project"]["dependencies"], *chain.from_iterable(extras), *project["dependency-groups"]["dev"]]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_has_no_address_and_no_path(lock: str) -> None:
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|(^|\s)/\w", (ROOT / lock).read_text())


@pytest.mark.parametrize("lock", LOCKS)
def test_every_library_of_a_lock_file_has_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    blocks = re.findall(r"^[\w.-]+==(?:[^\n]*\\\n)*[^\n]*", text, re.MULTILINE)
    assert len(blocks) == len(pinned(lock))
    assert all("--hash=sha256:" in block for block in blocks)


def test_development_uses_the_versions_of_the_runtime() -> None:
    runtime, development = (pinned(lock) for lock in LOCKS)
    assert runtime.items() <= development.items()


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    required = required_by(project)
    names = {re.split(r"[\[<>=~]", one)[0].lower() for one in required}
    assert names <= pinned("requirements-dev.lock").keys()


def test_every_dependency_has_its_reason_in_the_docs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    required = required_by(project)
    reasons = (ROOT / "docs" / "dependencies.md").read_text().lower()
    missing = [one for one in required if f"| {re.split(r'[<>=~]', one)[0].lower()} |" not in reasons]
    assert missing == []
