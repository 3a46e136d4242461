"""Collects the texts of all settings: settings.yaml < .env < the environment. Names have the form of the environment.

In settings.yaml a section is a mapping: `telegram: {api_id: 1}` is ADA_TELEGRAM_API_ID. A name that ends in _FILE gives
a file that contains the value, as containers pass secrets. An empty value, or file, counts as not set.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import SetupError
from core.model.yaml_faults import fault_of

PREFIX = "ADA_"


@dataclass(frozen=True)
class RawSetting:
    """The text of one setting and its source, for error messages."""

    name: str
    text: str
    source: str


def collect(
    environment: Mapping[str, str], directory: Path, may_receive: Callable[[str], bool] = bool
) -> dict[str, RawSetting]:
    """Return all settings of all sources by name, without _FILE; later sources override earlier ones. Raises
    SetupError.

    A file with a secret is not opened if `may_receive` is false for its setting.
    """
    dotenv = dict(read_dotenv(directory / ".env"))
    named = {**dotenv, **environment}.get(f"{PREFIX}SETTINGS")
    file = named or "settings.yaml"
    found: dict[str, RawSetting] = {}
    for source, values in (
        (file, dict(read_yaml(directory / file, is_required=bool(named)))),
        (".env", dotenv),
        ("the environment", {name: text.strip() for name, text in environment.items()}),
    ):
        found |= raw_settings({name: text for name, text in values.items() if may_receive(name)}, source)
    found.pop(f"{PREFIX}SETTINGS", None)
    return found


def export(name: str) -> None:
    """Put a setting from .env or settings.yaml into the environment of this process, for code that reads it there."""
    if setting := collect(os.environ, Path.cwd(), name.__eq__).get(name):
        os.environ[name] = setting.text


def raw_settings(values: Mapping[str, str], source: str) -> dict[str, RawSetting]:
    settings = [
        resolve_file(RawSetting(name, text, source))
        for name, text in values.items()
        if name.startswith(PREFIX) and text != ""
    ]
    return {setting.name: setting for setting in settings if setting.text != ""}


def resolve_file(setting: RawSetting) -> RawSetting:
    """Replace a setting X_FILE by X with the content of the file."""
    if not setting.name.endswith("_FILE"):
        return setting
    try:
        text = Path(setting.text).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SetupError(f"{setting.name} names a file that cannot be read: {setting.text}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetupError(f"{setting.name} names a file that is not text in UTF-8: {setting.text}") from None
    return RawSetting(setting.name.removesuffix("_FILE"), text, setting.text)


def read_dotenv(path: Path) -> Iterator[tuple[str, str]]:
    """Parse lines `NAME=value`, `export NAME="value"` and comments."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            yield name.strip(), unquote(value.strip())


def unquote(text: str) -> str:
    """Remove quotes or a trailing comment. In double quotes `\n` is a line break: a key in PEM form needs it."""
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
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is not YAML: {fault_of(error)}") from None
    if not isinstance(tree or {}, dict):
        raise SetupError(f"{path} must be a mapping of names to values")
    yield from flatten(tree or {}, PREFIX)


def flatten(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield ADA_A_B for {a: {b: …}}. YAML reads `off` and `yes` as booleans; they become text again."""
    for name, value in tree.items():
        full = f"{prefix}{name}".upper()
        if isinstance(value, dict):
            yield from flatten(value, f"{full}_")
        elif value is not None:
            yield full, as_text(value)


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(as_text(item) for item in value)
    return str(value)
