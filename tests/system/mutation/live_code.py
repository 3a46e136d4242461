"""Changes functions of a running program: gives them the code of the mutated source.

So a process that has imported everything can be forked for each mutant, and nothing is imported anew.
"""

import gc
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType


class CannotChange(Exception):
    """The change is outside of functions, or a function would need other variables of its surroundings."""


def functions_below(folder: Path) -> dict[str, list[FunctionType]]:
    """File → its functions that exist in this process."""
    found: dict[str, list[FunctionType]] = {}
    gc.unfreeze()  # `get_objects` leaves out what is frozen, as all that tests/conftest.py has imported
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename.startswith(f"{folder}/"):
            found.setdefault(one.__code__.co_filename, []).append(one)
    return found


def replace_code(functions: Iterable[FunctionType], path: Path, before: bytes, after: bytes) -> None:
    """Gives the functions of the file at `path` the code of its source `after`. Raises CannotChange."""
    codes = dict[CodeType, CodeType]()
    _pair(_compiled(before, path), _compiled(after, path), codes)
    for function in functions:
        new = codes.get(function.__code__)
        if new is not None:
            _give(function, new)


def _compiled(source: bytes, path: Path) -> CodeType:
    return compile(source, str(path), "exec", dont_inherit=True)


def _pair(before: CodeType, after: CodeType, codes: dict[CodeType, CodeType]) -> None:
    """Collects the functions that differ. Modules and classes have run already and must be equal."""
    if before.co_flags & inspect.CO_OPTIMIZED:
        if before != after:
            codes[before] = after
        return
    if before.co_code != after.co_code or _constants(before) != _constants(after):
        raise CannotChange
    for old, new in zip(_nested(before), _nested(after), strict=True):
        _pair(old, new, codes)


def _constants(code: CodeType) -> list[tuple[type, object]]:
    return [(type(one), None if isinstance(one, CodeType) else one) for one in code.co_consts]


def _nested(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _give(function: FunctionType, code: CodeType) -> None:
    try:
        function.__code__ = code
    except ValueError as error:  # other free variables
        raise CannotChange from error
