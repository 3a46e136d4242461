"""A row of the specification is claimed by a single test, which shows it: never by a module, a class or inheritance."""

import ast
from pathlib import Path

from tests.support.paths import TESTS


def has_row(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and ast.unparse(one) == "pytest.mark.row" for one in ast.walk(node))


def claims_for_many(path: Path) -> list[str]:
    """Where this file claims a row for more than one test function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    scopes: list[ast.Module | ast.ClassDef] = [tree, *classes]
    marked = [node for scope in scopes for node in scope.body if isinstance(node, ast.Assign) and has_row(node)]
    decorated = [node for node in classes if any(has_row(decorator) for decorator in node.decorator_list)]
    return [f"{path.relative_to(TESTS)}:{node.lineno}" for node in [*marked, *decorated]]


def test_no_module_and_no_class_claims_a_row() -> None:
    assert [claim for path in sorted(TESTS.rglob("*.py")) for claim in claims_for_many(path)] == []


def test_tests_that_courier_classes_inherit_claim_no_row() -> None:
    for name in ("contract.py", "bot_contract.py"):
        assert not has_row(ast.parse((TESTS / "couriers" / name).read_text(encoding="utf-8")))
