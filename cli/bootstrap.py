"""Creates `.venv` and installs the libraries of a lock file. Called by the script `ada`, with any Python >= 3.11; by
`./ada check` also for an environment of another Python.

Uses only the standard library. Guarantees: exit code 0 means that all libraries are installed. After an interruption
the next call creates the environment anew. Of two calls at the same time the second one waits for the first.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

DEVELOPMENT = "requirements-dev.lock"
"""Contains all of requirements.lock (tests/repository/test_lock_files.py)."""

PIP_INSTALL = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--require-hashes", "-r")


def main(root: Path, lock: str, name: str = ".venv") -> int:
    """Installs into the environment `name` in `root`. Returns 0, or 2 after a message on stderr."""
    # The lock on the folder is released when this process and its children, which inherit it, have ended.
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log("another call is installing; waiting for it")
        fcntl.flock(folder, fcntl.LOCK_EX)
    venv = root / name
    if is_installed(venv, root, lock) or is_installed(venv, root, DEVELOPMENT):
        return 0
    try:
        install(venv, root, lock, folder)
    except (OSError, subprocess.CalledProcessError) as error:
        log(f"cannot install the libraries: {error}")
        log("see the output above; the first call needs a network connection to the package index")
        return 2
    return 0


def is_installed(venv: Path, root: Path, lock: str) -> bool:
    copy = venv / lock
    return python_of(venv).exists() and copy.exists() and copy.read_bytes() == (root / lock).read_bytes()


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def install(venv: Path, root: Path, lock: str, folder: int) -> None:
    """Creates the environment, or updates a complete one in place: a running `./ada up` keeps its files."""
    python = python_of(venv)
    copies = list(venv.glob("requirements*.lock"))
    if not (copies and python.exists()):
        log(f"creating {venv.name} with Python {sys.version.split()[0]}")
        run([sys.executable, "-m", "venv", "--clear", venv], folder)
    for copy in copies:
        copy.unlink(missing_ok=True)
    log(f"installing {lock}")
    run([python, *PIP_INSTALL, root / lock], folder)
    for packages in venv.glob("lib/python*/site-packages"):  # from here the clone is four levels up
        (packages / "ada.pth").write_text("../../../..\n")
    shutil.copyfile(root / lock, venv / lock)


def run(command: list[str | Path], folder: int) -> None:
    subprocess.run(command, stdout=sys.stderr, pass_fds=[folder], check=True)


def log(line: str) -> None:
    print(f"ada: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
