"""The version of Ada that a process runs; two versions may work side by side."""

from pathlib import Path

import core
from core.redis import library


def version_facts() -> dict[str, object]:
    """The folder of its `core`, and the name of its library of functions."""
    return {"core": str(Path(core.__file__).parent), "scripts": [library.current().name]}
