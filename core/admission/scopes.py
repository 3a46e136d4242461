"""The scopes of API keys, and which of them include others. Pure."""

from collections.abc import Collection

SCOPES = frozenset({"send", "read", "manage", "urgent", "updates", "admin", "operator"})


def permits(scopes: Collection[str], scope: str) -> bool:
    """Return whether these scopes permit what needs `scope`. admin includes all but operator; operator includes all."""
    if scope == "operator":
        return "operator" in scopes
    return not {scope, "admin", "operator"}.isdisjoint(scopes)
