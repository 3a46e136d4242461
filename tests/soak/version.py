"""The version of Ada that a process runs; two versions may work side by side."""

from pathlib import Path

import core
from core.redis import scripts


def version_facts() -> dict[str, object]:
    """The folder of its `core`, and the hashes of its scripts."""
    known = [scripts.load(name, True).sha for name in scripts.names()]
    return {"core": str(Path(core.__file__).parent), "scripts": known}
