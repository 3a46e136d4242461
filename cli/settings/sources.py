"""Where settings come from: settings.yaml < .env < the environment. Names are written as in the environment, ADA_….

In settings.yaml a section is a mapping: `telegram: {api_id: 1}` is ADA_TELEGRAM_API_ID. In each source a name ending in
_FILE gives the file that holds the value, which is how containers hand over secrets. An empty value is no value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import SetupError

PREFIX = "ADA_"


@dataclass(frozen=True)
class Given:
    """One setting as it was found, and where, for the complaint."""

    name: str
    text: str
    source: str


def gather(environment: Mapping[str, str], directory: Path) -> dict[str, Given]:
    """Everything that was set, the strongest source last, by its name without _FILE. Raises SetupError."""
    dotenv = dict(read_dotenv(directory / ".env"))
    place = {**dotenv, **environment}.get(f"{PREFIX}SETTINGS")
    found: dict[str, Given] = {}
    for source, values in (
        (str(place or "settings.yaml"), dict(read_yaml(directory / (place or "settings.yaml"), bool(place)))),
        (".env", dotenv),
        ("the environment", environment),
    ):
        found |= ours(values, source)
    found.pop(f"{PREFIX}SETTINGS", None)
    return found


def ours(values: Mapping[str, str], source: str) -> dict[str, Given]:
    given = [Given(name, text, source) for name, text in values.items() if name.startswith(PREFIX) and text != ""]
    return {one.name: one for one in (resolve_file(one) for one in given)}


def resolve_file(given: Given) -> Given:
    if not given.name.endswith("_FILE"):
        return given
    try:
        text = Path(given.text).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise SetupError(f"{given.name} names a file that cannot be read: {fault}") from None
    return Given(given.name.removesuffix("_FILE"), text, given.text)


def read_dotenv(path: Path) -> Iterator[tuple[str, str]]:
    """Lines `NAME=value`, `export NAME="value"`, comments."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            yield name.strip(), unquoted(value.strip())


def unquoted(text: str) -> str:
    """A value in quotes is taken to the letter, but for line breaks in double ones (a key in PEM form needs them)."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace("\\n", "\n")
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    return text.split(" #", 1)[0].rstrip()


def read_yaml(path: Path, is_required: bool) -> Iterator[tuple[str, str]]:
    if not path.is_file():
        if is_required:
            raise SetupError(f"{PREFIX}SETTINGS names {path}, which is not a file")
        return
    import yaml

    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as fault:
        raise SetupError(f"{path} is not YAML: {fault}") from None
    if not isinstance(tree or {}, dict):
        raise SetupError(f"{path} must be a mapping of names to values")
    yield from flat(tree or {}, PREFIX)


def flat(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """ADA_A_B for {a: {b: …}}. YAML reads `off` and `yes` as truth values; they go back to the words they were."""
    for name, value in tree.items():
        full = f"{prefix}{name}".upper()
        if isinstance(value, dict):
            yield from flat(value, f"{full}_")
        elif value is not None:
            yield full, as_text(value)


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(as_text(one) for one in value)
    return str(value)
