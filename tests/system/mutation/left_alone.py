"""Code of which a change is no mutant: no caller sees a difference, or only that something happens a little later."""

import ast
import re

_LOGS = ("log", "logger", "logging")
_WAITS = ("sleep", "timeout", "timeout_at")
_KEYWORDS = frozenset({"strict", "frozen", "slots", "repr", "exc_info", "stacklevel", "driver_info"})
"""Arguments that check the programmer, or change a text for developers."""
_TIME_OR_SIZE = re.compile(
    r"(?:^|_)(?:timeout|pause|sleep|patience|interval|backoff|grace|silence|slack|lease|pages?|at_once|chunk|block_ms)(?:_|$)",
    re.IGNORECASE,
)
"""Names of times to wait and of sizes of pages: one more or less changes when something happens, not what."""


def is_left_alone(node: ast.AST) -> bool:
    """Whether nothing below this node is changed."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.FunctionDef(name="__repr__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case (
            ast.Expr(value=ast.Await(value=ast.Call() as call))
            | ast.Expr(value=ast.Call() as call)
            | (ast.Call() as call)
        ):
            return _is_log(call) or _is_wait(call)
        case ast.keyword(arg=str(name), value=value):
            return name in _KEYWORDS or (isinstance(value, ast.Constant) and bool(_TIME_OR_SIZE.search(name)))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.isupper() and bool(_TIME_OR_SIZE.search(name))
    return False


def _is_log(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return name in _LOGS
    return False


def _is_wait(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="asyncio"), attr=name):
            return name in _WAITS
    return False
