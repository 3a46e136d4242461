"""The names that the code of a job gives to steps, effects, compensations and waits, and which stored ones it lacks.

They are read from the source, without running it: from the file of the class, those of the classes from which it
inherits, and those beside and below it that these import. A name that is computed stands for every name.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from core.jobs import JobRecord
from core.jobs.steps import COMPENSATION
from jobs.endings import OWN_FOLDERS
from jobs.job import Job

_VERBS = {"step": "step:", "effect": "effect:", "wait": "wait:", "compensate": COMPENSATION}
"""The methods that take a name → how a stored name of theirs begins."""

_ANY = ".*"
_MOST_NAMED = 5
_OF_A_CHILD = "child "  # `Child.result` waits for such a signal


def unknown_names(kind: type[Job], stored: Iterable[str]) -> list[str]:
    """Return which stored names of an iteration, for example `step:search`, the code of its class does not have. None
    are returned if the class has `checks_names = False`, or its source is not there.
    """
    if not kind.checks_names:
        return []
    found = {name for name in map(_shown, stored) if name}
    return sorted(name for name in found if not _has(_patterns(kind), name))


def left_to_others(kind: type[Job], record: JobRecord, stored: Iterable[str]) -> str:
    """Return why this code must not go on with an iteration that has begun: it would do an effect twice, or wait for
    another signal. "" if it may. A step with another name is only done again.
    """
    if record.code != kind.version:
        return (
            f"waits for a process with version {record.code!r} of the job, with which the iteration has begun; "
            f"this code is version {kind.version!r}"
        )
    missing = [name for name in unknown_names(kind, stored) if not name.startswith("step:")]
    if not missing:
        return ""
    names = ", ".join(map(repr, missing[:_MOST_NAMED]))
    remedy = "bring the name back, run the code of before until the iteration has ended, or stop and start the job"
    return f"waits for a process whose code has {names}, with which the iteration has begun; {remedy}"


def _shown(stored: str) -> str:
    """Return the name of a step, an effect or a wait as it is shown; "" for what has no name in the code."""
    if stored.startswith("wait "):
        signal = stored.removeprefix("wait ").partition("\t")[0]
        return "" if signal.startswith(_OF_A_CHILD) else f"wait:{signal}"
    return stored if stored.startswith(("step:", "effect:")) else ""


def _has(patterns: Collection[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name, re.DOTALL) for pattern in patterns)


@cache
def names_compensations(kind: type[Job]) -> bool:
    """Return whether the code of a class may call `compensate`; True if its source is not there."""
    own = {one.__name__ for one in kind.__mro__}
    try:
        return any(_has_compensation(ast.parse(file.read_text()), own) for file in _files(kind))
    except (OSError, SyntaxError, ValueError):
        return True


def _has_compensation(node: ast.AST, own: Collection[str]) -> bool:
    """Return whether a source calls `compensate`, outside of jobs with another name than `own`."""
    match node:
        case ast.Attribute(attr="compensate"):
            return True
        case ast.ClassDef(name=name) if name not in own and "run" in map(_name, node.body):
            return False
    return any(_has_compensation(child, own) for child in ast.iter_child_nodes(node))


def _name(node: ast.AST) -> str:
    return node.name if isinstance(node, ast.AsyncFunctionDef) else ""


@cache
def _patterns(kind: type[Job]) -> frozenset[str]:
    try:
        return frozenset(pattern for file in _files(kind) for pattern in _in_source(file.read_text()))
    except (OSError, SyntaxError, ValueError):
        return frozenset([_ANY])


def _files(kind: type[Job]) -> Iterator[Path]:
    """Emit the files of a class, each once. Raises OSError if it has none."""
    left = [sys.modules.get(one.__module__) for one in kind.__mro__]
    home, seen = _file(left[0]), set[Path]()
    if home is None:
        raise OSError("the class has no file")
    while left:
        module = left.pop()
        file = _file(module)
        if module is None or file is None or file in seen or not _is_beside(file, home):
            continue
        seen.add(file)
        yield file
        left += [_module_of(value) for value in list(vars(module).values())]


def _module_of(value: object) -> ModuleType | None:
    name = getattr(value, "__module__", None)
    return value if isinstance(value, ModuleType) else sys.modules.get(name) if isinstance(name, str) else None


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if isinstance(name, str) and name.endswith(".py") else None


def _is_beside(file: Path, home: Path) -> bool:
    """Return whether a file is beside or below that of the class, and neither Ada's nor of an installed package."""
    if not file.is_relative_to(home.parent) or str(file).startswith(OWN_FOLDERS):
        return False
    return "site-packages" not in file.relative_to(home.parent).parts


def _in_source(source: str) -> Iterator[str]:
    """Emit a pattern for each name in a source."""
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {id(call.func) for call in calls}
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _VERBS and (call.args or call.keywords):
            yield f"{_VERBS[call.func.attr]}{_pattern(call)}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _VERBS and id(node) not in called:
            yield f"{_VERBS[node.attr]}{_ANY}"  # it is passed on, and called with any name


def _pattern(call: ast.Call) -> str:
    """Return what the first argument of a call may be."""
    match call.args[0] if call.args else None:
        case ast.Constant(value=str(name)):
            return re.escape(name)
        case ast.JoinedStr(values=parts):
            return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else _ANY for part in parts)
    return _ANY
