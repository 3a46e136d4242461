"""Reads nodes as what they should be, and reports those that are something else. The base of the readers of this
package.

An empty value (null, {}, [], "") is legal wherever a mapping or a list is expected.
"""

from collections.abc import Collection

from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, describe, is_empty, read_flag, read_number
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.loader.problem import Reporter
from scenarios.words import Text, sentence


class Reader(Reporter):
    """Reads the nodes of one file."""

    def pairs(self, node: Node | None, what: Text) -> tuple[tuple[Scalar, Node], ...]:
        """Return the pairs of a mapping; none if it is empty or something else, which is reported."""
        if isinstance(node, MapNode):
            return node.pairs
        if node is not None and not is_empty(node):
            self.wrong(node, what, sentence("mapping"))
        return ()

    def items(self, node: Node | None, what: Text) -> tuple[Node, ...]:
        """Return the items of a list; none if it is empty or something else, which is reported."""
        if isinstance(node, ListNode):
            return node.items
        if node is not None and not is_empty(node):
            self.wrong(node, what, sentence("list"))
        return ()

    def one_or_many(self, node: Node | None) -> tuple[Node, ...]:
        """Return the items of a list, or the node itself; nothing if it is empty."""
        if node is None or is_empty(node):
            return ()
        return node.items if isinstance(node, ListNode) else (node,)

    def text(self, node: Node | None, what: Text) -> str | None:
        """Return a text as written; None if it is missing, empty or no text, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar):
            return node.text
        self.wrong(node, what, sentence("text"))
        return None

    def number(self, node: Node | None, what: Text) -> int | None:
        """Return a whole number, also in quotes; None if it is missing or something else, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar) and (number := as_int(node)) is not None:
            return number
        self.wrong(node, what, sentence("whole_number"))
        return None

    def flag(self, node: Node | None, what: Text) -> bool | None:
        """Return true or false; None if it is missing or something else, which is reported."""
        if node is None or is_empty(node):
            return None
        if isinstance(node, Scalar) and (flag := read_flag(node.text)) is not None:
            return flag
        self.wrong(node, what, sentence("true_false"))
        return None

    def wrong(self, node: Node, what: Text, wanted: Text) -> None:
        self.error(node, "WRONG_TYPE", sentence("what_must_be", what=what, wanted=wanted, found=describe(node)))

    def unknown(self, node: Scalar, known: Collection[str], code: str, what: Text) -> None:
        """Report an unknown name: an error if it is a slip of a known one, else a warning, as another version may know
        it.
        """
        report = self.error if slip_of(node.text, tuple(known)) else self.warning
        report(node, code, did_you_mean(sentence("is_not", name=repr(node.text), text=what), node.text, known))


def as_int(node: Scalar) -> int | None:
    number = read_number(node.text)
    return number if isinstance(number, int) else None
