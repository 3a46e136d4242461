"""`{price|*0.9}`: numbers, exact in decimals."""

from collections.abc import Callable
from decimal import Decimal

from scenarios.bot.data import Data
from scenarios.placeholders.modifiers.table import ModifierError, modifier, number_from
from scenarios.placeholders.values import ARITHMETIC, LARGEST, from_number
from scenarios.words import sentence


def _calculate(sign: str, value: Data, operand: Decimal) -> int | float:
    number = number_from(value)
    if sign in "/%" and not operand:
        raise ModifierError(sentence("division_zero"))
    result = _CALCULATIONS[sign](number, operand)
    if abs(result) >= LARGEST:
        raise ModifierError(sentence("result_too_large"))
    return from_number(result)


def _remainder(number: Decimal, divisor: Decimal) -> Decimal:
    """Return the remainder with the sign of the divisor, as in Python: -7 % 3 is 2."""
    return ARITHMETIC.remainder(ARITHMETIC.add(ARITHMETIC.remainder(number, divisor), divisor), divisor)


_CALCULATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": ARITHMETIC.add,
    "-": ARITHMETIC.subtract,
    "*": ARITHMETIC.multiply,
    "/": ARITHMETIC.divide,
    "%": _remainder,
}


@modifier("+", "n", number_from)
def add(value: Data, operand: Decimal) -> int | float:
    """Adds `n`. In all arithmetic, numbers in texts count as numbers; a whole result is an int, any other a float."""
    return _calculate("+", value, operand)


@modifier("-", "n", number_from)
def subtract(value: Data, operand: Decimal) -> int | float:
    """Subtracts `n`."""
    return _calculate("-", value, operand)


@modifier("*", "n", number_from)
def multiply(value: Data, operand: Decimal) -> int | float:
    """Multiplies by `n`: `{price|*0.9}`."""
    return _calculate("*", value, operand)


@modifier("/", "n", number_from)
def divide(value: Data, operand: Decimal) -> int | float:
    """Divides by `n`. Division by zero leaves the value as it is."""
    return _calculate("/", value, operand)


@modifier("%", "n", number_from)
def remainder(value: Data, operand: Decimal) -> int | float:
    """The remainder of a division by `n`."""
    return _calculate("%", value, operand)
