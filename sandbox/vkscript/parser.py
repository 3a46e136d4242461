"""Compiles a program by recursive descent: one method for each rule of the grammar."""

from dataclasses import dataclass

from sandbox.vkscript.errors import CompileError, RunError
from sandbox.vkscript.methods import FUNCTIONS
from sandbox.vkscript.nodes import (
    ApiCall,
    Array,
    Binary,
    Column,
    Expression,
    FunctionCall,
    Literal,
    MethodCall,
    Name,
    Negative,
    Not,
    Object,
    Place,
)
from sandbox.vkscript.operators import LEVELS
from sandbox.vkscript.run import Run, Value
from sandbox.vkscript.statements import Assign, Block, Delete, Evaluate, If, Return, Statement, While
from sandbox.vkscript.tokens import Token, number, string, tokens

CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
RESERVED = {"var", "if", "else", "while", "return", "delete", "function", "for", "do", "new", "try", "switch", "API"}


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program."""

    body: Block

    def run(self, run: Run) -> Value:
        """Run it and return what it returned; null if it ends without `return`."""
        try:
            returned = self.body.run(run)
        except RecursionError:
            raise RunError("Too deep nesting") from None
        return returned[0] if returned is not None else None


def parse(code: str) -> Program:
    """Compile a program; raises CompileError."""
    try:
        return _Parser(code).program()
    except RecursionError:  # the parser calls itself, and brackets can be nested deeper than Python's stack
        raise CompileError("too deep nesting", 1) from None


class _Parser:
    def __init__(self, code: str) -> None:
        self._tokens = tokens(code)
        self._next = next(self._tokens)

    def program(self) -> Program:
        statements = []
        while self._next.kind != "end":
            statements.append(self._statement())
        return Program(Block(tuple(statements)))

    # reading

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _at(self, text: str) -> bool:
        return self._next.text == text and self._next.kind in ("sign", "name")

    def _accept(self, text: str) -> bool:
        found = self._at(text)
        if found:
            self._take()
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f", expecting {text}")

    def _identifier(self) -> str:
        if self._next.kind != "name":
            raise self._unexpected(", expecting a name")
        return self._take().text

    def _unexpected(self, more: str = "") -> CompileError:
        return CompileError(f"unexpected {self._next.text[:40]!a}{more}", self._next.line)

    # statements

    def _statement(self) -> Statement:
        if self._accept(";"):
            return Block(())
        if self._accept("{"):
            return self._block()
        if self._accept("if"):
            return self._if()
        if self._accept("while"):
            return While(self._in_brackets(), self._statement())
        return self._simple_statement()

    def _block(self) -> Block:
        statements = []
        while not self._accept("}"):
            statements.append(self._statement())
        return Block(tuple(statements))

    def _if(self) -> If:
        condition, then = self._in_brackets(), self._statement()
        return If(condition, then, self._statement() if self._accept("else") else Block(()))

    def _simple_statement(self) -> Statement:
        if self._accept("var"):
            statement: Statement = self._declarations()
        elif self._accept("return"):
            statement = Return(Literal(None) if self._at(";") else self._expression())
        elif self._accept("delete"):
            statement = self._delete()
        else:
            statement = self._assignment()
        self._expect(";")
        return statement

    def _declarations(self) -> Block:
        declared = [self._declaration()]
        while self._accept(","):
            declared.append(self._declaration())
        return Block(tuple(declared))

    def _declaration(self) -> Assign:
        name = self._variable()
        return Assign(name, self._expression() if self._accept("=") else Literal(None))

    def _variable(self) -> Name:
        if self._next.text in RESERVED or self._next.text in CONSTANTS:
            raise self._unexpected()
        return Name(self._identifier())

    def _delete(self) -> Delete:
        target = self._expression()
        if not isinstance(target, Place):
            raise self._unexpected()
        return Delete(target)

    def _assignment(self) -> Statement:
        target = self._expression()
        if not self._at("="):
            return Evaluate(target)
        if not isinstance(target, (Name, Place)):
            raise self._unexpected()
        self._take()
        return Assign(target, self._expression())

    # expressions

    def _in_brackets(self) -> Expression:
        self._expect("(")
        expression = self._expression()
        self._expect(")")
        return expression

    def _expression(self) -> Expression:
        return self._operation(0)

    def _operation(self, level: int) -> Expression:
        if level == len(LEVELS):
            return self._unary()
        left = self._operation(level + 1)
        while self._next.kind == "sign" and self._next.text in LEVELS[level]:
            left = Binary(self._take().text, left, self._operation(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._accept("!"):
            return Not(self._unary())
        if self._accept("-"):
            return Negative(self._unary())
        return self._postfix(self._primary())

    def _postfix(self, subject: Expression) -> Expression:
        while True:
            if self._accept("."):
                subject = self._member(subject)
            elif self._accept("@."):
                subject = Column(subject, self._identifier())
            elif self._accept("["):
                subject = Place(subject, self._expression())
                self._expect("]")
            else:
                return subject

    def _member(self, subject: Expression) -> Expression:
        name = self._identifier()
        if self._accept("("):
            return MethodCall(subject, name, self._list(")"))
        return Place(subject, Literal(name))

    def _primary(self) -> Expression:
        if self._next.kind == "number":
            return Literal(number(self._take()))
        if self._next.kind == "string":
            return Literal(string(self._take()))
        if self._next.kind == "name":
            return self._named()
        return self._bracketed()

    def _bracketed(self) -> Expression:
        if self._at("("):
            return self._in_brackets()
        if self._accept("["):
            return Array(self._list("]"))
        if self._accept("{"):
            return self._object()
        raise self._unexpected()

    def _named(self) -> Expression:
        if self._accept("API"):
            return self._api_call()
        if self._next.text in CONSTANTS:
            return Literal(CONSTANTS[self._take().text])
        if self._next.text in FUNCTIONS:
            return FunctionCall(self._take().text, self._in_brackets())
        return self._variable()

    def _api_call(self) -> ApiCall:
        self._expect(".")
        section = self._identifier()
        self._expect(".")
        method = self._identifier()
        self._expect("(")
        arguments = self._list(")")
        if len(arguments) > 1:
            raise self._unexpected()
        return ApiCall(f"{section}.{method}", arguments[0] if arguments else Literal({}))

    def _list(self, end: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._accept(end):
            if items:
                self._expect(",")
            items.append(self._expression())
        return tuple(items)

    def _object(self) -> Object:
        fields: dict[str, Expression] = {}
        while not self._accept("}"):
            if fields:
                self._expect(",")
            self._field(fields)
        return Object(fields)

    def _field(self, fields: dict[str, Expression]) -> None:
        name = string(self._take()) if self._next.kind == "string" else self._identifier()
        self._expect(":")
        fields[name] = self._expression()
