"""Creates `.venv` and installs the libraries of a lock file. Called by the script `ada`, with any Python >= 3.11; by
`./ada check` also for an environment of another Python.

Uses only the standard library. Guarantees: exit code 0 means that all libraries are installed. After an interruption
the next call creates the environment anew. Of two calls at the same time the second one waits for the first.
Shows one line of progress; the output of uv or pip only with `--verbose`, or if it fails.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

DEVELOPMENT = "requirements-dev.lock"
"""Contains all of requirements.lock (tests/system/repository/test_lock_files.py)."""

LOCKED = ("--require-hashes", "--no-deps", "-r")
"""The lock files are complete, so nothing is chosen: before 23.3 pip looks for the newest `coverage[toml]` beside the
`coverage` of the lock file, and refuses it, as it has no hash.
"""

PIP_INSTALL = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", *LOCKED)
UV_INSTALL = ("pip", "install", "--compile-bytecode", *LOCKED)
UV_OF_LOCK = re.compile(r"^uv==(?:.*\\\n)*.*", re.MULTILINE)
"""The entry of uv in a lock file, with its hashes."""

COLLECTING, INSTALLING = re.compile(r"(?:Collecting|Processing \S*/)\s*([\w.]+)"), "Installing collected packages"
"""Lines of pip: one for each library, from an index or a folder, and one for all."""

SHOWN_LINES, SHOWN_WIDTH = 15, 300
"""The part of a failed command's output that is shown."""


def main(root: Path, lock: str, name: str = ".venv", *, verbose: bool = False) -> int:
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
        install(venv, root, lock, folder, verbose)
    except (OSError, subprocess.CalledProcessError) as error:
        print(getattr(error, "output", None) or "", file=sys.stderr)
        log(f"cannot install the libraries: {error}")
        log("see the output above; the first call needs a network connection to the package index")
        return 2
    return 0


def is_installed(venv: Path, root: Path, lock: str) -> bool:
    copy = venv / lock
    return python_of(venv).exists() and copy.exists() and copy.read_bytes() == (root / lock).read_bytes()


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def install(venv: Path, root: Path, lock: str, folder: int, verbose: bool) -> None:
    """Create the environment, or update a complete one in place: a running `./ada up` keeps its files."""
    python = python_of(venv)
    copies = list(venv.glob("requirements*.lock"))
    progress = SetupProgress(f"setting up {venv.name} with Python {sys.version.split()[0]}")
    progress.show("")
    if not (copies and python.exists()):
        run([sys.executable, "-m", "venv", "--clear", "--without-pip", venv], folder, progress, verbose)
    for copy in copies:
        copy.unlink(missing_ok=True)
    uv: str | Path | None = shutil.which("uv")
    if not uv:
        run([python, "-m", "ensurepip"], folder, progress, verbose)
        uv = uv_by_pip(python, root / lock, folder, progress, verbose)
    if not (uv and uv_installs(uv, python, root / lock, folder, progress, verbose)):
        run([python, "-m", "ensurepip"], folder, progress, verbose)
        run([python, *PIP_INSTALL, root / lock], folder, progress, verbose)
    # Processes start sooner with bytecode, which Python itself writes only where the environment permits it.
    compiled = sorted(found.parent for found in root.glob("*/__init__.py") if found.parent.name != "tests")
    run([python, "-m", "compileall", "-q", "-j", "0", *compiled], folder, progress, verbose)
    for packages in venv.glob("lib/python*/site-packages"):  # from here the clone is four levels up
        (packages / "ada.pth").write_text("../../../..\n")
    shutil.copyfile(root / lock, venv / lock)
    progress.end()


def uv_by_pip(python: Path, lock: Path, folder: int, progress: "SetupProgress", verbose: bool) -> Path | None:
    """Install the uv of the lock file, which needs a third of pip's processor time for the others. Returns None if the
    lock file has no uv.
    """
    found = UV_OF_LOCK.search(lock.read_text())
    if not found:
        return None
    entry = python.parents[1] / "uv.lock"
    entry.write_text(found[0] + "\n")
    run([python, *PIP_INSTALL, entry], folder, progress, verbose)
    return python.parent / "uv"


def uv_installs(
    uv: str | Path, python: Path, lock: Path, folder: int, progress: "SetupProgress", verbose: bool
) -> bool:
    """Install with uv. Returns False if it fails: it does not read the settings of pip, which may name the only index
    that this machine reaches.
    """
    progress.show(": installing with uv")
    try:
        run([uv, *UV_INSTALL, lock, "--python", python], folder, progress, verbose)
    except (OSError, subprocess.CalledProcessError):
        log("uv cannot install the libraries; trying pip")
        return False
    return True


class SetupProgress:
    """One line on stderr, which a terminal shows anew at each step; elsewhere its first and its last state."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._collected = 0
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def read(self, line: str) -> None:
        """Read a line of pip."""
        if found := COLLECTING.match(line):
            self._collected += 1
            self.show(f": {self._collected} libraries found, {found[1]}")
        elif line.startswith(INSTALLING):
            self.show(f": installing {self._collected} libraries")

    def show(self, state: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[Kada: {self._title}{state}"[:110], end="", file=sys.stderr, flush=True)
        elif not state:
            log(f"{self._title}; this takes one or two minutes")

    def end(self) -> None:
        print("\r\x1b[K" if self._is_terminal else "", end="", file=sys.stderr)
        log(f"{self._title}: done in {time.monotonic() - self._began:.0f} s")


def run(command: list[str | Path], folder: int, progress: SetupProgress, verbose: bool) -> None:
    """Run a command. Raises CalledProcessError with the output if the command fails; a verbose one has printed it."""
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", pass_fds=[folder]
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if verbose:
                print(line, end="", file=sys.stderr, flush=True)
            else:
                lines.append(line.rstrip()[:SHOWN_WIDTH])
                progress.read(line)
    if process.returncode:
        raise subprocess.CalledProcessError(
            process.returncode, [str(word) for word in command], "\n".join(lines[-SHOWN_LINES:])
        )


def log(line: str) -> None:
    print(f"ada: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    root, *words = [word for word in sys.argv[1:] if word != "--verbose"]
    sys.exit(main(Path(root), *words, verbose="--verbose" in sys.argv))
