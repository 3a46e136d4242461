"""Formats people, groups and supergroups as text for people. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Item = Mapping[str, Any]


def format_user_line(user: Item) -> str:
    """Return a person in one line."""
    parts = (str(user["id"]), user["name"] or "", user["role"] or "", user["email"] or "")
    return "  ".join(part for part in parts if part)


def format_user(user: Item) -> str:
    """Return a person with all fields, one per line."""
    return "\n".join(f"{name:<9} {value}" for name, value in _fields(user))


def _fields(user: Item) -> Iterator[tuple[str, str]]:
    for name in ("id", "name", "email", "role", "locale"):
        if user[name] is not None:
            yield name, str(user[name])
    for channel, addresses in user["contacts"].items():
        yield "contact", ", ".join(f"{channel}:{address}" for address in addresses)
    if user["opt_out"]:
        yield "opt-out", ", ".join(user["opt_out"])
    for name, value in user.get("fields", {}).items():
        yield f"field {name}", value


def format_group(group: Item) -> str:
    """Return a group in one line."""
    return _titled(group) + ("  virtual" if group["virtual"] else "")


def format_supergroup(supergroup: Item) -> str:
    """Return a supergroup in one line, with its groups."""
    return f"{_titled(supergroup)}: {', '.join(map(str, supergroup['groups'])) or 'no groups'}"


def _titled(item: Item) -> str:
    return f"{item['id']}  {item['title']}" if item["title"] else str(item["id"])
