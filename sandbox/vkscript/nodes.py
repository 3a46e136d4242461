"""The parts of a compiled program. An expression has a value in a run; a statement does something to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sandbox.vkscript.errors import RunError
from sandbox.vkscript.methods import FUNCTIONS, method
from sandbox.vkscript.operators import binary, number_of
from sandbox.vkscript.run import Run, Value


class Expression(Protocol):
    """Something with a value."""

    def value(self, run: Run) -> Value: ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    constant: Value

    def value(self, run: Run) -> Value:
        run.step()
        return self.constant


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str

    def value(self, run: Run) -> Value:
        run.step()
        if self.name not in run.variables:
            raise RunError(f"Undefined variable {self.name}")
        return run.variables[self.name]

    def assign(self, run: Run, value: Value) -> None:
        run.variables[self.name] = value


@dataclass(frozen=True, slots=True)
class Array:
    """`[…]`; what is put in is copied."""

    items: tuple[Expression, ...]

    def value(self, run: Run) -> Value:
        return [run.copied(item.value(run)) for item in self.items]


@dataclass(frozen=True, slots=True)
class Object:
    """`{name: …}`; what is put in is copied."""

    fields: Mapping[str, Expression]

    def value(self, run: Run) -> Value:
        return {name: run.copied(field.value(run)) for name, field in self.fields.items()}


@dataclass(frozen=True, slots=True)
class Not:
    """`!operand`."""

    operand: Expression

    def value(self, run: Run) -> Value:
        run.step()
        return not self.operand.value(run)


@dataclass(frozen=True, slots=True)
class Negative:
    """`-operand`."""

    operand: Expression

    def value(self, run: Run) -> Value:
        run.step()
        return -number_of(self.operand.value(run))


@dataclass(frozen=True, slots=True)
class Binary:
    """`left sign right`; `&&` and `||` give the side that decided."""

    sign: str
    left: Expression
    right: Expression

    def value(self, run: Run) -> Value:
        run.step()
        left = self.left.value(run)
        if self.sign in ("&&", "||"):
            decided = bool(left) == (self.sign == "||")
            return left if decided else self.right.value(run)
        return binary(self.sign, left, self.right.value(run))


@dataclass(frozen=True, slots=True)
class Place:
    """`subject[key]` and `subject.key`."""

    subject: Expression
    key: Expression

    def value(self, run: Run) -> Value:
        run.step()
        subject, key = self.subject.value(run), self.key.value(run)
        if key == "length" and isinstance(subject, (list, str)):
            return len(subject)
        if isinstance(subject, dict):
            return subject.get(str(key))
        return _item(subject, key)

    def assign(self, run: Run, value: Value) -> None:
        subject, key = self.subject.value(run), self.key.value(run)
        if isinstance(subject, dict):
            subject[str(key)] = run.copied(value)
        elif isinstance(subject, list) and isinstance(key, int) and 0 <= key <= len(subject):
            subject[key : key + 1] = [run.copied(value)]
        else:
            raise RunError("Cannot assign here")

    def delete(self, run: Run) -> None:
        subject, key = self.subject.value(run), self.key.value(run)
        if isinstance(subject, dict):
            subject.pop(str(key), None)
        elif isinstance(subject, list) and isinstance(key, int) and 0 <= key < len(subject):
            del subject[key]


def _item(subject: Value, key: Value) -> Value:
    if isinstance(subject, (list, str)) and isinstance(key, int) and 0 <= key < len(subject):
        return subject[key]
    return None


@dataclass(frozen=True, slots=True)
class Column:
    """`subject@.name`: that field of every element."""

    subject: Expression
    name: str

    def value(self, run: Run) -> Value:
        subject = self.subject.value(run)
        if not isinstance(subject, list):
            return None
        return [run.copied(item.get(self.name)) if isinstance(item, dict) else None for item in subject]


@dataclass(frozen=True, slots=True)
class MethodCall:
    """`subject.name(…)`."""

    subject: Expression
    name: str
    arguments: tuple[Expression, ...]

    def value(self, run: Run) -> Value:
        run.step()
        subject = self.subject.value(run)
        return method(run, subject, self.name, [argument.value(run) for argument in self.arguments])


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`parseInt(…)` and its like."""

    name: str
    argument: Expression

    def value(self, run: Run) -> Value:
        run.step()
        return FUNCTIONS[self.name](self.argument.value(run))


@dataclass(frozen=True, slots=True)
class ApiCall:
    """`API.section.method({…})`."""

    method: str
    parameters: Expression

    def value(self, run: Run) -> Value:
        run.step()
        return run.api(self.method, self.parameters.value(run))
