"""The import directions of docs/architecture.md are enforced for every package."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT

OWN = {"examples", "tests"}
"""What may import everything."""


def contracts() -> dict[str, object]:
    settings: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return settings


def test_every_package_is_in_the_contracts() -> None:
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")} - OWN
    assert packages == set(contracts()["root_packages"])  # type: ignore[call-overload]


@pytest.mark.parametrize(("imported", "is_kept"), [("core", True), ("sandbox", False)])
def test_an_import_against_the_directions_is_found(tmp_path: Path, imported: str, is_kept: bool) -> None:
    for package in ("core", "sandbox", "scenarios"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "scenarios" / "wrong.py").write_text(f"import {imported}\n")
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_packages =\n    core\n    sandbox\n    scenarios\n"
        "[importlinter:contract:1]\nname = directions\ntype = layers\nlayers =\n    sandbox | scenarios\n    core\n"
    )
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode == 0) is is_kept, done.stdout
