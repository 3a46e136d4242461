"""`ada` and cli/bootstrap.py in a fresh clone: an interruption, concurrent calls, no network, no Python.

The lock files of these clones are empty or have a wheel that the test makes, so nothing is downloaded.
"""

import hashlib
import os
import signal
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import await_sync

COPIED = ("ada", "cli/bootstrap.py")
NO_NETWORK = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose only verb prints where it was imported from."""
    root = tmp_path / "a clone"
    (root / "cli").mkdir(parents=True)
    for name in COPIED:
        (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "ada").chmod(0o755)
    (root / "cli" / "__init__.py").touch()
    (root / "cli" / "__main__.py").write_text("print('imported from', __file__)\n")
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (root / lock).touch()
    return root


def start(clone: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [clone / "ada", "demo"],
        cwd=clone.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_killed_call_two_calls_at_once_a_moved_clone_and_no_network(clone: Path) -> None:
    killed = start(clone)
    await_sync((clone / ".venv" / "bin").exists, what="the start of the installation")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    calls = [start(clone), start(clone)]
    outputs = [call.communicate() for call in calls]
    assert [call.returncode for call in calls] == [0, 0], outputs
    assert [stdout for stdout, _ in outputs] == [f"imported from {clone}/cli/__main__.py\n"] * 2
    messages = "".join(stderr for _, stderr in outputs)
    assert messages.count("setting up .venv") == 2, "its beginning and its end"
    assert "waiting for it" in messages
    assert all(line.startswith("ada: ") for line in messages.splitlines()), "no line of pip"

    moved = clone.rename(clone.with_name("moved"))
    assert start(moved).communicate() == (f"imported from {moved}/cli/__main__.py\n", "")

    (moved / "requirements.lock").write_text(f"aiohttp==3.14.0 --hash=sha256:{'0' * 64}\n")
    offline = start(moved, **NO_NETWORK)
    assert "needs a network connection" in offline.communicate()[1]
    assert offline.returncode == 2


@pytest.fixture
def wheels(clone: Path) -> Path:
    """A folder with the wheel of a library, which the lock file of the clone names."""
    folder = clone.parent / "wheels"
    folder.mkdir()
    entry = add_wheel(folder, "greeting", {"greeting.py": "TEXT = 'from the wheel'\n"})
    (clone / "requirements.lock").write_text(entry)
    (clone / "cli" / "__main__.py").write_text("import greeting\nprint(greeting.TEXT)\n")
    return folder


def add_wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """Write the wheel of version 1.0. Returns its entry for a lock file."""
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    facts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: not-in-the-lock-file\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, **{f"{name}-1.0.dist-info/{fact}": text for fact, text in facts.items()}}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16  # a script stays executable
            archive.writestr(entry, text)
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("uv_works", [True, False])
def test_the_uv_of_the_lock_file_installs_and_pip_where_uv_cannot(clone: Path, wheels: Path, *, uv_works: bool) -> None:
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    entry = add_wheel(wheels, "uv", {"uv-1.0.data/scripts/uv": f'#!/bin/sh\nexec "{uv}" "$@"\n'})
    with (clone / "requirements.lock").open("a") as lock:
        lock.write(entry)
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    if uv_works:
        settings["UV_FIND_LINKS"] = str(wheels)
    call = start(clone, **settings)
    stdout, stderr = call.communicate()
    assert (call.returncode, stdout) == (0, "from the wheel\n"), stderr
    assert ("trying pip" in stderr) is not uv_works


def test_a_uv_on_the_path_installs_without_pip(clone: Path, wheels: Path) -> None:
    with_uv = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    call = start(clone, PATH=with_uv, UV_OFFLINE="1", UV_NO_CACHE="1", UV_FIND_LINKS=str(wheels))
    stdout, stderr = call.communicate()
    assert (call.returncode, stdout) == (0, "from the wheel\n"), stderr
    assert not (clone / ".venv" / "bin" / "pip3").exists()


def test_without_python_the_script_says_what_to_install(clone: Path) -> None:
    tools = clone.parent / "bin"
    tools.mkdir()
    for name in ("dirname", "readlink", "cmp"):
        found = next(folder for folder in (Path("/usr/bin"), Path("/bin")) if (folder / name).exists())
        (tools / name).symlink_to(found / name)
    done = subprocess.run(["/bin/sh", clone / "ada", "demo"], env={"PATH": str(tools)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
    assert "python3-venv" in done.stderr


@pytest.mark.parametrize("args", [["check", "--help"], ["test", "-h"], ["lock", "--help"], ["--help"], []])
def test_help_installs_nothing(clone: Path, args: list[str]) -> None:
    done = subprocess.run([clone / "ada", *args], capture_output=True, text=True)
    assert done.stdout == f"imported from {clone}/cli/__main__.py\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert not (clone / ".venv").exists()


def test_help_of_the_development_commands_needs_no_libraries() -> None:
    """The system's Python has none of Ada's libraries: -S leaves out site-packages."""
    for verb in ("", "check", "test", "soak", "prove", "lock"):
        command = ["-P", "-S", "-m", "cli", *([verb] if verb else []), "--help"]
        done = subprocess.run([sys.executable, *command], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), verb
        assert f"usage: ada {verb}" in done.stdout
