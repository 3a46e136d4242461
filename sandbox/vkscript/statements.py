"""The statements of a compiled program. Each says whether the program has returned, and what."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sandbox.vkscript.nodes import Expression, Name, Place
from sandbox.vkscript.run import Run, Value

Returned: TypeAlias = tuple[Value] | None  # a value in a tuple once `return` was met


class Statement(Protocol):
    """Something that is done."""

    def run(self, run: Run) -> Returned: ...


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in their order, until one returns."""

    statements: tuple[Statement, ...]

    def run(self, run: Run) -> Returned:
        for statement in self.statements:
            run.step()
            returned = statement.run(run)
            if returned is not None:
                return returned
        return None


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = source;` and `var target = source;`."""

    target: Name | Place
    source: Expression

    def run(self, run: Run) -> Returned:
        self.target.assign(run, self.source.value(run))
        return None


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression for what it does."""

    expression: Expression

    def run(self, run: Run) -> Returned:
        self.expression.value(run)
        return None


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete target;`."""

    target: Place

    def run(self, run: Run) -> Returned:
        self.target.delete(run)
        return None


@dataclass(frozen=True, slots=True)
class If:
    """`if (…) … else …`."""

    condition: Expression
    then: Statement
    otherwise: Statement

    def run(self, run: Run) -> Returned:
        return (self.then if self.condition.value(run) else self.otherwise).run(run)


@dataclass(frozen=True, slots=True)
class While:
    """`while (…) …`."""

    condition: Expression
    body: Statement

    def run(self, run: Run) -> Returned:
        while self.condition.value(run):
            run.step()
            returned = self.body.run(run)
            if returned is not None:
                return returned
        return None


@dataclass(frozen=True, slots=True)
class Return:
    """`return …;`."""

    expression: Expression

    def run(self, run: Run) -> Returned:
        return (self.expression.value(run),)
