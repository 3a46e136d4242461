"""The directory of ADA_DATA. Its owner alone can read what Ada stores: phone numbers, sessions, passwords."""

import stat
import tempfile
from pathlib import Path

from core.errors import SetupError

PRIVATE_UMASK = 0o077
"""For the child processes: what they create, also the files of the embedded server, is for its owner only."""

CONTENTS = frozenset(
    {
        "answers",
        "api_key",
        "bots",
        "couriers",
        "jobs",
        "lost+found",
        "sandbox",
        "sign_in",
        "scenarios",
        "speech",
        "up.json",
        "up.json.new",
        "valkey",
    }
)
"""The entries that Ada creates in the directory; `lost+found` comes with a volume of its own."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def prepare_data_directory(data: Path) -> Path:
    """Create the directory with mode 0700, or give it this mode; return its absolute path. Raises SetupError.

    A directory that also contains files of others, for example a home directory, keeps its mode. Our directories in it
    have mode 0700 in any case.
    """
    data = data.absolute()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        contents = {entry.name for entry in data.iterdir()}
        for path in ([data] if contents <= CONTENTS else []) + [data / name for name in contents & CONTENTS]:
            make_private(path)
        with tempfile.TemporaryFile(dir=data):
            return data
    except OSError as error:
        raise SetupError(
            f"ADA_DATA is {data}, which cannot be used ({error.strerror}): give this user a directory to write in, "
            "or set ADA_DATA to another"
        ) from None


def private_directory(directory: Path) -> Path:
    """Create a directory of ADA_DATA, and ADA_DATA itself, if they do not exist. Both have mode 0700."""
    if not directory.parent.exists():
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    make_private(directory)
    return directory


def make_private(path: Path) -> None:
    """Take the rights of group and others away. What belongs to another user is left as it is."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & OTHERS and not path.is_symlink():
        try:
            path.chmod(mode & ~OTHERS)
        except PermissionError:
            return


def make_files_private(directory: Path) -> None:
    """Make everything in the directory private, as `make_private` does."""
    for path in directory.rglob("*"):
        try:
            make_private(path)
        except FileNotFoundError:  # a running server removes files
            continue


def is_private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & OTHERS
