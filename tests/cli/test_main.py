"""The command line itself: exit codes, help that costs nothing, and the script `ada`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import VERBS, command_of, parser_for

ROOT = Path(__file__).parents[2]


def ada(*words: str, cwd: Path = ROOT, script: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(script)] if script else [sys.executable, "-m", "cli"]
    return subprocess.run([*command, *words], cwd=cwd, capture_output=True, text=True, env=environment())


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ADA_")} | {
        "PYTHONPATH": str(ROOT)
    }


def test_help_lists_every_verb_and_imports_none_of_them() -> None:
    script = (
        "import sys; from cli.main import main\ntry: main(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True).stdout
    assert all(verb in shown for verb in VERBS)
    heavy = ("redis", "aiohttp", "telethon", "vkbottle", "pydantic", "asyncio", "yaml")
    assert not any(f"'{name}'" in shown for name in heavy)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_its_command_and_its_help(verb: str) -> None:
    command = command_of(verb)
    assert callable(command.run)
    assert verb in parser_for(verb, command).format_help()


@pytest.mark.parametrize("words", [("fly",), ("lock", "--nonsense"), ("--nonsense",)])
def test_wrong_usage_is_exit_code_two(words: tuple[str, ...]) -> None:
    done = ada(*words)
    assert done.returncode == 2
    assert done.stderr


def test_rows_of_the_specification_are_listed_as_json() -> None:
    done = ada("test", "--rows", "--json", "tests/cli")
    listed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0
    assert {"D-01", "K-44", "C-92", "U-22"} <= {one["row"] for one in listed}


def test_the_totals_of_a_test_run_are_told_as_json() -> None:
    done = ada("test", "--json", "-n", "0", "tests/repository/test_lock_files.py")
    told = json.loads(done.stdout)
    assert told["passed"]
    assert told["tests"] == 7
    assert told["skipped"] == 0
    assert "passed" in done.stderr


def test_the_script_works_from_anywhere_through_a_symbolic_link(tmp_path: Path) -> None:
    link = tmp_path / "elsewhere"
    link.symlink_to(ROOT / "ada")
    (tmp_path / "cli").mkdir()  # a folder named like ours must not be taken for it
    (tmp_path / "cli" / "__init__.py").write_text("raise SystemExit('the wrong cli')")
    done = ada("--help", cwd=tmp_path, script=link)
    assert done.returncode == 0
    assert "check" in done.stdout


def test_the_script_says_what_is_missing_where_there_is_no_python(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "cli").mkdir(parents=True)
    (clone / "ada").write_bytes((ROOT / "ada").read_bytes())
    (clone / "requirements.lock").write_text("")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "readlink", "cmp", "cat"):
        found = next(place for place in (Path("/usr/bin"), Path("/bin")) if (place / name).exists())
        (tools / name).symlink_to(found / name)
    done = subprocess.run(["/bin/sh", clone / "ada", "demo"], env={"PATH": str(tools)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
