"""The product is not cut into fragments again: a function is not moved out of its module only to keep a file short, and
what is true of one channel stands in its folder.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from couriers.channel import channels
from tests.support.paths import ROOT

PACKAGES = ("cli", "core", "couriers", "delivery", "jobs", "providers", "scenarios")
SHORT = 80
"""Lines of a module that has to have more than one user."""

MOST_SHORT_WITH_ONE_USER = 14
MOST_NAMES_OF_SEVERAL_CLASSES = 7

NO_CHANNELS = {"email", ("core.directory.importing.one_roster", "sms")}
"""Texts that are the name of a channel and mean something else: the field of a person, also as a claim of OpenID
Connect; a column of OneRoster."""


@cache
def modules() -> dict[str, ast.Module]:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return {name_of(file.relative_to(ROOT)): ast.parse(file.read_text()) for file in files}


def name_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module) -> set[str]:
    """Return the modules of the product that a module imports, also in its functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & modules().keys()) or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules().keys()


def test_few_short_modules_have_one_user() -> None:
    users = Counter(name for module, tree in modules().items() for name in imported(tree) - {module})
    short = [name for name, tree in modules().items() if users[name] == 1 and is_short(name, tree)]
    assert len(short) <= MOST_SHORT_WITH_ONE_USER, f"merge a new one into its user, if they are one subject: {short}"


def is_short(name: str, tree: ast.Module) -> bool:
    is_package = any(other.startswith(f"{name}.") for other in modules())
    return not is_package and max((node.end_lineno or 0 for node in tree.body), default=0) <= SHORT


def test_a_class_name_stands_once() -> None:
    """A class that has the name of another is called by its thing: `VkClient`, not `Client`."""
    classes = Counter(node.name for tree in modules().values() for node in tree.body if isinstance(node, ast.ClassDef))
    several = sorted(name for name, count in classes.items() if count > 1)
    assert len(several) <= MOST_NAMES_OF_SEVERAL_CLASSES, several


def test_a_channel_is_named_only_in_its_folder() -> None:
    """All else asks the registry, so that an installed channel is treated as Ada's own; its codes, too."""
    codes = {code for channel in channels().values() for code in channel.problems}
    named = {
        (module, node.value)
        for module, tree in modules().items()
        if not module.startswith("couriers.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in (channels().keys() - NO_CHANNELS) | codes
    }
    assert named <= NO_CHANNELS
