"""Makes a bot's folder from texts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from scenarios.loader import Loaded, Problem, load

Files = Mapping[str, str]


def write(folder: Path, files: Files) -> Path:
    """Writes the files, named by their path in the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def loaded(folder: Path, files: Files, environment: Mapping[str, str] | None = None) -> Loaded:
    return load(write(folder, files), environment or {})


def with_russian(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Return the problems, each of which must have a Russian text."""
    assert [one.message for one in problems if "message" not in one.translations["ru"]] == []
    return problems


def found(result: Loaded) -> list[tuple[str, int, int, str]]:
    """File, line, column and code of each problem."""
    return [(problem.file, problem.line, problem.column, problem.code) for problem in with_russian(result.problems)]
