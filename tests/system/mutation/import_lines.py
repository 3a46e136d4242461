"""The tests for a line that runs when its module is imported: a constant, a default, a field of a class.

No test runs such a line itself. What depends on it is run by the tests that run the lines which use its names. For a
default of a function these are the lines of its body; otherwise the lines, of any file, that contain the strings and
attributes of this line, or the name that it is assigned to. A name that starts with an underscore counts in its own
file only.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tests.support.paths import ROOT

_Lines = Mapping[int, Sequence[str]]
_WORD = re.compile(r"\w{3,}")


def groups_of_tests(tests: Mapping[str, _Lines], file: str, line: int) -> tuple[set[str], set[str], set[str]]:
    """The tests that run what uses the line's own words; the name it is assigned to; and any line of the file."""
    tree = ast.parse(_source(file))
    return (
        _tests_of_words(tests, file, {*_words_of(tree, line)}),
        _tests_of_names(tests, file, tree, line),
        _tests_of_lines(tests.get(file, {}), None),
    )


def _tests_of_names(tests: Mapping[str, _Lines], file: str, tree: ast.Module, line: int) -> set[str]:
    if (function := _function_at(tree, line)) is not None:
        body = range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)
        return _tests_of_lines(tests.get(file, {}), body)
    return _tests_of_words(tests, file, {*_targets_of(tree, line)})


def _words_of(tree: ast.Module, line: int) -> Iterator[str]:
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) == line:
            if isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORD.fullmatch(node.value):
                yield node.value


def _function_at(tree: ast.Module, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function with this line."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [one for one in functions if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(around, key=lambda one: one.lineno, default=None)


def _targets_of(tree: ast.Module, line: int) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= line <= (node.end_lineno or node.lineno):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _tests_of_words(tests: Mapping[str, _Lines], file: str, words: set[str]) -> set[str]:
    found = set[str]()
    for other in tests:
        mine = {word for word in words if other == file or not word.startswith("_")}
        found |= _tests_of_lines(tests[other], _lines_with(other, frozenset(mine)))
    return found


@cache
def _lines_with(file: str, words: frozenset[str]) -> set[int]:
    if not words:
        return set()
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
    return {number for number, text in enumerate(_source(file).splitlines(), 1) if pattern.search(text)}


def _tests_of_lines(lines: _Lines, wanted: range | set[int] | None) -> set[str]:
    """`wanted` None: all lines."""
    return {test for number, tests in lines.items() if wanted is None or number in wanted for test in tests}


@cache
def _source(file: str) -> str:
    return (ROOT / file).read_text()


def lines_of_statement(file: str, line: int) -> range:
    """The lines of the innermost statement with this line; of a compound one (`if`, `for`, `def`) its head."""
    around = [one for one in _heads_of(file) if line in one]
    return min(around, key=len, default=range(line, line + 1))


@cache
def _heads_of(file: str) -> list[range]:
    statements = [node for node in ast.walk(ast.parse(_source(file))) if isinstance(node, ast.stmt)]
    return [range(one.lineno, _last_line_of_head(one) + 1) for one in statements]


def _last_line_of_head(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    last = statement.end_lineno or statement.lineno
    if not body:
        return last
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return max(statement.lineno, min(last, first.lineno - 1))
