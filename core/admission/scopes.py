"""The scopes of API keys, and which of them include others. Pure."""

from collections.abc import Collection

SCOPES = frozenset({"send", "read", "manage", "urgent", "updates", "inspect", "admin", "operator"})


def permits(scopes: Collection[str], scope: str) -> bool:
    """Return whether these scopes permit what needs `scope`. admin includes all but operator and inspect; operator
    includes all. What `inspect` permits depends on the route: see `may_read`.
    """
    if scope in ("operator", "inspect"):
        return not {scope, "operator"}.isdisjoint(scopes)
    return not {scope, "admin", "operator"}.isdisjoint(scopes)


def may_read(scopes: Collection[str], scope: str) -> bool:
    """Return whether these scopes permit to read what needs `scope`: inspect reads all that an operator reads."""
    return permits(scopes, scope) or "inspect" in scopes
