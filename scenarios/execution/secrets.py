"""Hides secrets in what is shown of a run, by their names and, wherever their values stand, by their values. Pure.

A value is a secret if it is a variable of the environment in the bot's files, a variable of the process with the name
of a secret, or stands under such a name in settings.yaml, in the event, in a field or a result of the run.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote_plus, urlsplit

from core.model.json_form import JsonObject
from scenarios.bot.data import Data
from scenarios.words import Sentence, Text

HIDDEN = "•••"

SHORTEST = 4
"""Characters; a shorter value stands in too many texts by chance."""
SHORTEST_OF_A_PROCESS = 8
"""Of a variable that no file of the bot names."""

_NAMES = "token|secret|passwo?r?d|passphrase|authorization|cookie|(?:api|private|access)_?key|sign_in_url|settings_url"
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^\w]+")
"""Names of headers and of JSON have `X-Api-Key` and `accessToken`: read as X_Api_Key and access_Token."""
_SECRET = re.compile(rf"(?:^|_)(?:{_NAMES})$", re.IGNORECASE)
_VARIABLE = re.compile(rf"(?:^|_)(?:{_NAMES}|key|pass)$|_pwd$", re.IGNORECASE)


class Secrets:
    """The secrets of one run, which must not be shown."""

    def __init__(self, variables: Mapping[str, str], values: Iterable[Data] = ()) -> None:
        """Collect the secrets. `variables`: of the environment, all of which are secret. `values`: settings, events,
        fields and results.
        """
        named = {text: HIDDEN for value in values for text in _secrets_in(value)}
        known = {**named, **{value: f"${{{name}}}" for name, value in variables.items()}}
        self._shown = {text: shown for text, shown in known.items() if len(text) >= SHORTEST}
        longest_first = sorted(map(re.escape, self._shown), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first)) if longest_first else None

    def hidden(self, value: Data, name: str = "") -> Data:
        """Return the value without secrets; `name`: of its field."""
        if is_secret(name) and value not in (None, ""):
            return HIDDEN
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, Mapping):
            return self.hidden_fields(value)
        return [self.hidden(one) for one in value] if isinstance(value, list | tuple) else value

    def hidden_fields(self, values: Mapping[str, Data]) -> JsonObject:
        """Return a mapping without secrets."""
        return {self.in_text(str(key)): self.hidden(one, str(key)) for key, one in values.items()}

    def said(self, text: Text) -> Text:
        """Return a text without secrets."""
        if isinstance(text, str):
            return self.in_text(text)
        values = ((name, one if isinstance(one, int) else self.said(one)) for name, one in text.values)
        return Sentence(text.code, tuple(values))

    def in_text(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._shown[found[0]], text) if self._pattern else text


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that have the name of a secret, and the passwords in addresses."""
    found = {}
    for name, value in environment.items():
        secret = next(_of_address(value), "") or (value if _VARIABLE.search(name) else "")
        if len(secret) >= SHORTEST_OF_A_PROCESS:
            found[name] = secret
    return found


def _of_address(value: str) -> Iterator[str]:
    """Emit the password of an address and its options with names of secrets, as they stand in it and decoded."""
    if "://" not in value:
        return
    try:
        parts = urlsplit(value)
    except ValueError:  # it looks like an address and is none
        return
    options = (option.partition("=")[::2] for option in parts.query.split("&"))
    for secret in (parts.password or "", *(value for name, value in options if is_secret(name))):
        if secret:
            yield from (secret, unquote_plus(secret))


def _secrets_in(value: Data, name: str = "") -> Iterator[str]:
    """Emit the texts under names of secrets, and the secrets of addresses, at any depth."""
    if isinstance(value, str):
        yield from (value,) if is_secret(name) else _of_address(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _secrets_in(one, str(key))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _secrets_in(one, name)


def is_secret(name: str) -> bool:
    return _SECRET.search(_WORD_ENDS.sub("_", name)) is not None
