"""Collects the texts of all settings: settings.yaml < .env < the environment. Names have the form of the environment.

In settings.yaml a section is a mapping: `telegram: {api_id: 1}` is ADA_TELEGRAM_API_ID. A name that ends in _FILE gives
a file that contains the value, as containers pass secrets. An empty value, or file, counts as not set.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import SetupError
from core.model.user_files import fault_of

PREFIX = "ADA_"
_LINE = re.compile(r"(?:export\s+)?([\w.-]+)\s*=(.*)")
_COMMENT = re.compile(r"\s#.*")
_QUOTED = re.compile(r"""(?:"([^"]*)"|'([^']*)')\s*(?:#.*)?""")


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
    """Parse lines `NAME=value`, `export NAME="value"` and comments. Raises SetupError, which shows no value."""
    if not path.is_file():
        return
    names: set[str] = set()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text, place = line.strip(), f"line {number} of {path.name}"
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if not found:
            raise SetupError(f"{place} is not NAME=value")
        name = found[1]
        if name.upper().startswith(PREFIX) and not name.startswith(PREFIX):
            raise SetupError(f"{place}: {name} is not a setting; their names are in capital letters")
        if name in names:
            raise SetupError(f"{place}: {name} is there twice")
        names.add(name)
        yield name, unquote(found[2], f"{place}: the value of {name}")


def unquote(text: str, what: str) -> str:
    """Return what stands behind the `=`, without quotes and without a comment, which begins behind a space. In double
    quotes `\\n` is a line break: a key in PEM form needs it. Raises SetupError, which calls the text `what`.
    """
    value = text.strip()
    if not value.startswith(('"', "'")):
        return _COMMENT.sub("", text).strip()
    found = _QUOTED.fullmatch(value)
    if not found:
        raise SetupError(f"{what} must end with the quote with which it begins, and have none between them")
    return found[2] if found[1] is None else found[1].replace("\\n", "\n")


def read_text(path: Path) -> str:
    """Return the text of a file, which may begin with a byte order mark. Raises SetupError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SetupError(f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetupError(f"{path.name} is not text in UTF-8") from None


def read_yaml(path: Path, is_required: bool) -> Iterator[tuple[str, str]]:
    if not path.is_file():
        if is_required:
            raise SetupError(f"{PREFIX}SETTINGS names {path}, which is not a file")
        return
    import yaml

    class AsWritten(yaml.SafeLoader):
        """Reads numbers, times and switches as text: a password may be 0123, a name `no`."""

    def construct(loader: AsWritten, node: yaml.ScalarNode) -> Any:
        return loader.construct_scalar(node)

    for kind in ("bool", "int", "float", "timestamp"):
        AsWritten.add_constructor(f"tag:yaml.org,2002:{kind}", construct)
    try:
        tree = yaml.load(read_text(path), AsWritten)
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is not YAML: {fault_of(error)}") from None
    if not isinstance(tree or {}, dict):
        raise SetupError(f"{path} must be a mapping of names to values")
    yield from flatten(tree or {}, PREFIX)


def flatten(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield ADA_A_B for {a: {b: …}}."""
    for name, value in tree.items():
        full = f"{prefix}{name}".upper()
        if isinstance(value, dict):
            yield from flatten(value, f"{full}_")
        elif value is not None:
            yield full, ",".join(map(str, value)) if isinstance(value, list) else str(value)
