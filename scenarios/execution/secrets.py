"""Hides secrets in what is shown of a run: variables of the environment, and what has the name of a secret. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "•••"

SHORTEST = 4
"""Characters; a shorter value stands in too many texts by chance."""

_SECRET = re.compile(r"(?:^|_)(?:token|secret|password|passphrase|authorization|api_?key|sign_in_url)$", re.IGNORECASE)


class Secrets:
    """What must not be shown of one run."""

    def __init__(self, variables: Mapping[str, str], values: Iterable[Mapping[str, Any]]) -> None:
        """`variables`: of the environment, in the bot's files. `values`: what the run's actions have returned."""
        named = {value: HIDDEN for found in values for name, value in found.items() if is_secret(name)}
        known = {**{value: f"${{{name}}}" for name, value in variables.items()}, **named}
        self._shown = {text: shown for text, shown in known.items() if isinstance(text, str) and len(text) >= SHORTEST}
        longest_first = sorted(map(re.escape, self._shown), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first)) if longest_first else None

    def hidden(self, value: Any, name: str = "") -> Any:
        """Return the value without secrets; `name`: of its field."""
        if is_secret(name) and value not in (None, ""):
            return HIDDEN
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, Mapping):
            return {self.in_text(str(key)): self.hidden(one, str(key)) for key, one in value.items()}
        return [self.hidden(one) for one in value] if isinstance(value, list | tuple) else value

    def in_text(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._shown[found[0]], text) if self._pattern else text


def is_secret(name: str) -> bool:
    """Return whether a field of this name has a secret."""
    return _SECRET.search(name) is not None
