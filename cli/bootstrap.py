"""Makes `.venv` beside the clone from a lock file.

Called by the script `ada` when the environment is missing or was made from another lock, with whatever Python >= 3.11
was found, so it uses the standard library alone and imports nothing of ours.
Guarantee: when it exits 0 the environment is whole. An interrupted making is begun again; a second call waits for the
first.
"""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUNTIME, DEVELOPMENT = "requirements.lock", "requirements-dev.lock"
# What one lock also brings: development's is resolved over the runtime's (a test compares them).
COVERS = {RUNTIME: (RUNTIME,), DEVELOPMENT: (RUNTIME, DEVELOPMENT)}
PIP = ("--disable-pip-version-check", "--no-input", "--require-virtualenv")


class Impossible(Exception):
    """The environment cannot be made here; the argument says why and what mends it."""


def main(root: Path, lock: str) -> int:
    """Exit code 0 with a whole environment, 2 with a complaint on stderr."""
    try:
        with alone(root):
            if not is_installed(root, lock):
                install(root, lock)
    except Impossible as complaint:
        say(f"{complaint}")
        return 2
    except OSError as fault:
        say(f"cannot make {root / '.venv'}: {fault}")
        return 2
    return 0


def say(line: str) -> None:
    print(f"ada: {line}", file=sys.stderr, flush=True)


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Holds the clone's folder itself as the lock: no file is left behind, and the kernel frees it if we are killed."""
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another call is setting up; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def stamp(root: Path, lock: str) -> Path:
    return root / ".venv" / f"installed-{lock}"


def stamp_text(root: Path, lock: str) -> str:
    """The same bytes as the script compares: the folder's path, then the lock."""
    return f"{root}\n{(root / lock).read_text()}"


def is_installed(root: Path, lock: str) -> bool:
    mark = stamp(root, lock)
    return python_of(root).exists() and mark.exists() and mark.read_text() == stamp_text(root, lock)


def python_of(root: Path) -> Path:
    return root / ".venv" / "bin" / "python"


def install(root: Path, lock: str) -> None:
    if not is_begun_well(root):
        create(root)
    for old in (RUNTIME, DEVELOPMENT):
        stamp(root, old).unlink(missing_ok=True)
    install_libraries(root, lock)
    link_clone(root)
    for covered in COVERS[lock]:
        write_whole(stamp(root, covered), stamp_text(root, covered))
    say("ready")


def is_begun_well(root: Path) -> bool:
    """Whether there is a base to install into: one that was created to its end and whose Python still exists."""
    return python_of(root).exists() and not unfinished(root).exists()


def unfinished(root: Path) -> Path:
    return root / ".venv" / "unfinished"


def create(root: Path) -> None:
    say(f"making .venv with Python {sys.version.split()[0]}")
    check_tools()
    shutil.rmtree(root / ".venv", ignore_errors=True)
    unfinished(root).parent.mkdir()
    unfinished(root).touch()
    run([sys.executable, "-m", "venv", *([] if has("ensurepip") else ["--without-pip"]), str(root / ".venv")])
    unfinished(root).unlink()


def check_tools() -> None:
    """Without ensurepip the environment has no pip of its own; the machine's own pip can still fill it."""
    if has("venv") and (has("ensurepip") or has("pip")):
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise Impossible(
        f"{sys.executable} (Python {version}) cannot make virtual environments: venv or ensurepip is missing.\n"
        f"     Debian, Ubuntu: sudo apt-get install python{version}-venv\n"
        f"     then run the same command again"
    )


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def install_libraries(root: Path, lock: str) -> None:
    wanted = len(re.findall(r"^[\w.-]+==", (root / lock).read_text(), re.MULTILINE))
    say(f"installing {wanted} libraries of {lock}")
    run([*pip_for(root), "install", *PIP, "--require-hashes", "-r", str(root / lock)], wanted)


def pip_for(root: Path) -> list[str]:
    """The environment's own pip, or the machine's pip told to work there."""
    own = [str(python_of(root)), "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    return [sys.executable, "-m", "pip", "--python", str(python_of(root))]


def run(command: list[str], wanted: int = 0) -> None:
    """Runs to the end; shows which library is being fetched, and everything that was said if it fails."""
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            show_progress(line, sum(one.startswith("Collecting ") for one in said), wanted)
    if process.returncode != 0:
        sys.stderr.writelines(said)
        raise Impossible(f"failed: {' '.join(command)}")


def show_progress(line: str, position: int, wanted: int) -> None:
    if line.startswith("Collecting "):
        say(f"  {position}/{wanted} {line.split()[1]}")


def link_clone(root: Path) -> None:
    """Makes the clone's packages importable from every directory, as an editable installation would."""
    for packages in (root / ".venv" / "lib").glob("python*/site-packages"):
        write_whole(packages / "ada.pth", f"{root}\n")


def write_whole(path: Path, text: str) -> None:
    """All or nothing: a stamp that was cut off half-way must not count."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
