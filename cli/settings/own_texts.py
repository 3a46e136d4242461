"""The texts of the installation (ADA_TEXTS): what Ada says to people in its own words.

    texts/ru.yaml, texts/en.yaml        reply_hint: "Reply to this message, and we answer."

A text replaces the one with this code in `core/texts.json`, in this language. It may have the {names} that Ada's has,
and may leave some out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter

from cli.command import closest
from core.errors import SetupError
from core.model.user_files import fault_of
from core.sentence import LANGUAGES, Languages, texts_for_people

_LONGEST = 1000
"""Characters."""


def read_own_texts(folder: Path | None) -> Mapping[str, Languages]:
    """Return the texts of a folder, by code and language; none without one. Raises SetupError for a file that cannot be
    used as a whole.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise SetupError(f"ADA_TEXTS is {folder}, which is not a folder")
    files = [folder / f"{language}.yaml" for language in LANGUAGES]
    if not any(file.is_file() for file in files):
        raise SetupError(f"ADA_TEXTS is {folder}, which has neither {files[0].name} nor {files[1].name}")
    found: dict[str, dict[str, str]] = {}
    for language, file in zip(LANGUAGES, files, strict=True):
        for code, text in _texts_of(file) if file.is_file() else ():
            found.setdefault(code, {})[language] = text
    return found


def names_in(text: str) -> set[str]:
    """Return the names in braces. Raises ValueError for braces that are not in pairs, or that hold more than a name."""
    names = set()
    for _, name, form, conversion in Formatter().parse(text):
        if name is not None:
            if form or conversion or not name.isidentifier():
                raise ValueError("braces hold the name of a value and nothing else; a brace itself is written twice")
            names.add(name)
    return names


def commented(language: str) -> str:
    """Return a file with all texts of Ada as comments, to be changed."""
    lines = [f"# {code}: {_quoted(texts[language])}" for code, texts in sorted(texts_for_people().items())]
    return "\n".join([_HEADS[language], "", *lines, ""])


_HEADS = {
    "en": "# What Ada says to people. Remove the # before a text, and change it; {names} stand for values.",
    "ru": "# Что Ада говорит людям. Уберите # перед текстом и измените его; {имена} в скобках – это значения.",
}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _texts_of(file: Path) -> Iterator[tuple[str, str]]:
    import yaml

    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8-sig")) or {}
    except yaml.YAMLError as error:
        raise SetupError(f"{file} is not YAML: {fault_of(error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{file} cannot be read: {error}") from None
    if not isinstance(tree, dict):
        raise SetupError(f"{file} must be a mapping of codes to texts")
    known = texts_for_people()
    for code, text in tree.items():
        if code not in known:
            raise SetupError(f"{file}: Ada has no text {code!r}{closest(str(code), list(known))}")
        _check(file, code, text, names_in(known[code]["en"]))
        yield code, text


def _check(file: Path, code: str, text: object, allowed: set[str]) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise SetupError(f"{file}: {code} must be a text of 1 to {_LONGEST} characters; put it in quotation marks")
    try:
        unknown = sorted(names_in(text) - allowed)
    except ValueError as error:
        raise SetupError(f"{file}: {code} cannot be used: {error}") from None
    if unknown:
        possible = ", ".join(f"{{{name}}}" for name in sorted(allowed)) or "no names"
        raise SetupError(f"{file}: {code} has {{{unknown[0]}}}; it can have {possible}")
