"""The further Pythons of this machine, each with an environment of its own: `./ada check` runs tests on the newest."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 11)
PYENV = Path("~/.pyenv/versions")


def further_pythons() -> dict[str, Path]:
    """Return every usable Python of another minor version than this one, from 3.11 on: version → program.

    Searches PATH and the versions of pyenv, and takes the first of each version.
    """
    found: dict[str, Path] = {}
    for program in candidates():
        version = version_of(program)
        if version >= OLDEST and version != sys.version_info[:2]:
            found.setdefault(".".join(map(str, version)), program)
    return dict(sorted(found.items(), key=lambda item: version_of(item[1])))


def candidates() -> Iterator[Path]:
    for directory in os.get_exec_path():
        yield from sorted(Path(directory).glob("python3.[0-9]*"))
    yield from sorted(PYENV.expanduser().glob("*/bin/python3"))


def version_of(program: Path) -> tuple[int, ...]:
    """Return (3, 12), or (0,) if the program is not a Python that can create environments, such as a shim of pyenv."""
    words = [str(program), "-c", "import sys, ensurepip, venv; print(*sys.version_info[:2])"]
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return (0,)
    return tuple(map(int, run.stdout.split())) if run.returncode == 0 else (0,)


def environment_of(version: str, program: Path, root: Path) -> Path | None:
    """Return the Python of `.venv-<version>` in `root`, with the libraries of development; None if they cannot be
    installed.

    It is kept, and installed again only if the lock file changes. It is installed by the uv of this environment: pip
    takes a minute of processor time.
    """
    name = f".venv-{version}"
    bootstrap = [str(program), "-I", str(root / "cli" / "bootstrap.py"), str(root), "requirements-dev.lock", name]
    ours = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])}
    done = subprocess.run(bootstrap, env=ours, check=False)
    return root / name / "bin" / "python" if done.returncode == 0 else None
