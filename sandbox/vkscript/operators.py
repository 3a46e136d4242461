"""What the signs between two values do."""

import operator
from collections.abc import Callable

from sandbox.vkscript.errors import RunError
from sandbox.vkscript.run import LONGEST_TEXT, Value

Number = int | float

LARGEST = 2**63

# from the weakest to the strongest
LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)

_COMPARISONS: dict[str, Callable[[str, str], bool] | Callable[[Number, Number], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def text_of(value: Value) -> str:
    """Return a value as a string, the way `+` joins it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, list):
        return ",".join(text_of(item) for item in value)
    return "[object]" if isinstance(value, dict) else str(value)


def number_of(value: Value) -> Number:
    """Return a value as a number: whatever is none counts as 0."""
    if isinstance(value, (int, float)):
        return value
    return _parsed(value) if isinstance(value, str) else 0


def _parsed(text: str) -> Number:
    try:
        return float(text) if "." in text else int(text[:20])
    except ValueError:
        return 0


def binary(sign: str, left: Value, right: Value) -> Value:
    """Return `left sign right` for everything but `&&` and `||`, which must not evaluate both sides."""
    if sign in ("==", "!="):
        return _equal(left, right) == (sign == "==")
    if sign in _COMPARISONS:
        return _compared(sign, left, right)
    if sign == "+":
        return _added(left, right)
    return _bounded(_calculated(sign, number_of(left), number_of(right)))


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        return text_of(left) == text_of(right)
    return left == right


def _compared(sign: str, left: Value, right: Value) -> bool:
    both_text = isinstance(left, str) and isinstance(right, str)
    if not both_text and not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        raise RunError("Comparing values of different or unsupported types")
    compare: Callable[[Value, Value], bool] = _COMPARISONS[sign]  # type: ignore[assignment]  # one type on both sides
    return compare(left, right)


def _added(left: Value, right: Value) -> Value:
    if isinstance(left, str) or isinstance(right, str):
        return _short(text_of(left) + text_of(right))
    return _bounded(number_of(left) + number_of(right))


def _short(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise RunError("Too long string")
    return text


def _calculated(sign: str, left: Number, right: Number) -> Number:
    if sign in ("/", "%"):
        return _divided(sign, left, right)
    if sign in ("*", "-"):
        return left * right if sign == "*" else left - right
    return _shifted(sign, int(left), int(right))


def _divided(sign: str, left: Number, right: Number) -> Number:
    if right == 0:
        raise RunError("Division by zero")
    if sign == "%":
        return left % right
    whole = isinstance(left, int) and isinstance(right, int) and left % right == 0
    return left // right if whole else left / right


def _shifted(sign: str, left: int, right: int) -> int:
    if sign in ("|", "&"):
        return left | right if sign == "|" else left & right
    if not 0 <= right < 64:
        raise RunError("Shift out of range")
    return left << right if sign == "<<" else left >> right


def _bounded(value: Number) -> Number:
    """Refuse numbers beyond 64 bits (and infinities), so that no program calculates for ever."""
    if not -LARGEST <= value < LARGEST:
        raise RunError("Number out of range")
    return value
