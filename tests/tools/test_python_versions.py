"""`tools.python_versions` finds the further Pythons of a machine, and nothing else."""

import sys
from pathlib import Path

import pytest

from tools import python_versions
from tools.python_versions import further_pythons


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory as PATH, and none of pyenv's versions."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(python_versions, "PYENV", tmp_path / "pyenv")
    return tmp_path


def add_program(path: Path, output: str, exit_code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


def test_pythons_of_path_and_pyenv_are_found_once_per_version_in_order(machine: Path) -> None:
    newer = add_program(machine / "python3.98", "3 98")
    add_program(machine / "pyenv/3.98.1/bin/python3", "3 98")
    newest = add_program(machine / "pyenv/3.100.1/bin/python3", "3 100")
    assert further_pythons() == {"3.98": newer, "3.100": newest}
    assert list(further_pythons()) == ["3.98", "3.100"]


def test_the_running_version_older_ones_and_broken_programs_are_left_out(machine: Path) -> None:
    add_program(machine / "python3.11", "{} {}".format(*sys.version_info[:2]))
    add_program(machine / "python3.10", "3 10")
    add_program(machine / "python3.99", "pyenv: python3.99: command not found", exit_code=127)
    (machine / "python3.97").write_text("not a program")
    assert further_pythons() == {}
