"""The sources of people that `./ada up` keeps (ADA_SYNCS): a line of the file is what stands behind `./ada sync`.

1c /srv/exports --every 1h --create-groups
ad ldaps://dc.example.org --every 4h --mapping people.yaml --secret-file password.txt     # a comment
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from core.errors import SetupError

_EVERY = "--every"


def read_sync_lines(file: Path | None) -> Sequence[Sequence[str]]:
    """Return the words of each line, the name of the source first; none without a file. Raises SetupError."""
    if file is None:
        return ()
    try:
        text = file.read_text("utf-8-sig")
        lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise SetupError(f"ADA_SYNCS is {file}, which cannot be read: {error}") from None
    found = [words for words in lines if words]
    for words in found:
        if not any(word.partition("=")[0] == _EVERY for word in words):
            raise SetupError(f"ADA_SYNCS: the line of {words[0]} needs {_EVERY}, such as {_EVERY} 1h")
    names = [words[0] for words in found]
    if repeated := {one for one in names if names.count(one) > 1}:
        raise SetupError(f"ADA_SYNCS has two lines of the source {min(repeated)}")
    return found
