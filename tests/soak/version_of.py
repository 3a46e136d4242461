"""Which version of Ada a process runs: two may work side by side."""

from pathlib import Path

import core
from core.redis import scripts


def whose() -> dict[str, object]:
    """Where its `core` is, and the hashes that the server knows its scripts by."""
    known = [scripts.load(name, True).sha for name in scripts.names()]
    return {"core": str(Path(core.__file__).parent), "scripts": known}
