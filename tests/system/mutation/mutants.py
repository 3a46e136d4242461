"""Mutants of the Python code: one small change each, by its place in the source.

Kinds: a comparison with its boundary moved or turned round; an integer or boolean constant changed; a call or await
whose value is not used left out; a condition negated, `and` and `or` exchanged; None returned in place of a value; a
text as default of a parameter emptied. What changes no behaviour that a caller sees is left alone: log calls, type
annotations, docstrings, `assert`s, times to wait and others (left_alone.py).
"""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT
from tests.system.mutation.left_alone import is_left_alone

PACKAGES = ("cli", "core", "couriers", "delivery", "jobs", "providers", "sandbox", "scenarios")

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: bytes `start` to `end` of `file` (relative to the repository) become `replacement`."""

    file: str
    line: int
    column: int
    start: int
    end: int
    original: str
    replacement: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.original} → {self.replacement}"

    @property
    def package(self) -> str:
        return self.file.partition("/")[0]

    def apply(self, root: Path) -> None:
        """Write the changed file below `root`."""
        path = root / self.file
        source = path.read_bytes()
        path.write_bytes(source[: self.start] + self.replacement.encode() + source[self.end :])


def all_mutants(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Every mutant of these packages, in the order of files and lines."""
    files = sorted(path for package in packages for path in (root / package).rglob("*.py"))
    return [mutant for path in files for mutant in mutants_of(path.read_text(), path.relative_to(root).as_posix())]


def sample(count: int, seed: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """`count` mutants chosen by `seed`; the same seed and code give the same mutants."""
    found = all_mutants(packages=packages)
    return random.Random(seed).sample(found, min(count, len(found)))


def of_places(places: Sequence[str]) -> list[Mutant]:
    """The mutants of the lines `file:line`."""
    files = sorted({place.partition(":")[0] for place in places})
    found = (mutant for file in files for mutant in mutants_of((ROOT / file).read_text(), file))
    return [mutant for mutant in found if f"{mutant.file}:{mutant.line}" in places]


def mutants_of(source: str, file: str) -> Iterator[Mutant]:
    """The mutants of one file."""
    starts = _line_starts(source)
    for node, replacement in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        original = source.encode()[start:end].decode()
        yield Mutant(file, node.lineno, node.col_offset + 1, start, end, " ".join(original.split()), replacement)


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """(the expression to replace, its replacement)."""
    for node in _behaviour(tree):
        if isinstance(node, ast.Compare):
            yield node, ast.unparse(_turned(node))
        elif isinstance(node, ast.BoolOp):
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
            yield node, str(_neighbour(node.value, node.lineno))
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.arguments):
            yield from _changed_defaults(node)
        elif isinstance(node, ast.Expr | ast.Return) and _has_effect(node):
            yield node.value, "None"  # type: ignore[misc]  # it has a value


def _neighbour(value: bool | int, line: int) -> bool | int:
    """The other truth; one more, or on even lines one less."""
    return not value if isinstance(value, bool) else value + (1 if line % 2 else -1)


def _has_effect(node: ast.Expr | ast.Return) -> bool:
    """Whether it calls something, or returns what is computed here."""
    if isinstance(node, ast.Return):
        return not isinstance(node.value, ast.Constant | None)
    return isinstance(node.value, ast.Call | ast.Await)


def _changed_defaults(node: ast.arguments) -> Iterator[tuple[ast.expr, str]]:
    """Texts only: numbers and conditions among the defaults are changed as everywhere."""
    for default in (*node.defaults, *node.kw_defaults):
        if isinstance(default, ast.Constant) and isinstance(default.value, str):
            yield default, repr("" if default.value else "changed")


def _turned(node: ast.Compare) -> ast.Compare:
    """The same comparison with its first operator changed."""
    first, *rest = node.ops
    return ast.Compare(node.left, [_COMPARISONS[type(first)](), *rest], node.comparators)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below `node` but annotations, log calls, asserts and class bodies' bare constants."""
    for child in ast.iter_child_nodes(node):
        if is_left_alone(child):
            continue
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield child.value
                yield from _behaviour(child.value)
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.args
            yield from _parts([*child.args.defaults, *(one for one in child.args.kw_defaults if one), *child.body])
            continue
        if isinstance(
            child, ast.ClassDef
        ):  # not its decorators and bases: `frozen=True` is checked by the type checker
            yield from _parts(child.body)
            continue
        yield child
        yield from _behaviour(child)


def _parts(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        if not is_left_alone(node):
            yield node
            yield from _behaviour(node)
