"""The common part of the verbs user, group and supergroup: list, show, add, change and remove over HTTP."""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.client.http_client import HttpClient, items, quoted
from cli.client.verbs import parse_id, print_result, print_stream
from cli.command import SUCCESS, WRONG_USAGE, CommandFailed

Action = Callable[[HttpClient, Namespace], Awaitable[int]]
Format = Callable[[Mapping[str, Any]], str]
Fields = Callable[[Namespace], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object at `/v1/<path>`. `line` formats it in one line, `whole` with all fields. `changes` and `new`
    return the fields that were given; `unchanged` is the error if there are none. `filters`: options of the list.
    """

    path: str
    line: Format
    whole: Format
    changes: Fields
    new: Fields
    unchanged: str
    filters: tuple[str, ...] = ()

    @property
    def actions(self) -> dict[str, Action]:
        """The actions of the verb by name."""
        return {
            "list": self.list_all,
            "show": self.show,
            "add": self.add,
            "change": self.change,
            "remove": self.remove,
        }

    def path_of(self, arguments: Namespace) -> str:
        return f"/v1/{self.path}/{quoted(arguments.id)}"

    async def list_all(self, api: HttpClient, arguments: Namespace) -> int:
        """Print one line per object, also with `--json`."""
        query = {name: value for name in self.filters if (value := getattr(arguments, name)) is not None}
        return await print_stream(arguments, items(api, f"/v1/{self.path}", self.path, query), self.line)

    async def show(self, api: HttpClient, arguments: Namespace) -> int:
        found = await api.call("GET", self.path_of(arguments))
        return print_result(arguments, found, self.whole(found))

    async def add(self, api: HttpClient, arguments: Namespace) -> int:
        named = {} if arguments.id is None else {"id": parse_id(arguments.id)}
        added = await api.call("POST", f"/v1/{self.path}", {**named, **self.new(arguments)})
        return print_result(arguments, added, f"added {self.line(added)}")

    async def change(self, api: HttpClient, arguments: Namespace) -> int:
        fields = self.changes(arguments)
        if not fields:
            raise CommandFailed(self.unchanged, WRONG_USAGE)
        changed = await api.call("PATCH", self.path_of(arguments), fields)
        return print_result(arguments, changed, f"changed {self.line(changed)}")

    async def remove(self, api: HttpClient, arguments: Namespace) -> int:
        await api.call("DELETE", self.path_of(arguments))
        return print_result(arguments, {"removed": parse_id(arguments.id)}, f"removed {arguments.id}")


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a resource at `<path>/<name>`. `argument`: the one that names them on the command line."""

    of: Resource
    name: str
    argument: str
    line: Format = field(default=str)

    async def list_all(self, api: HttpClient, arguments: Namespace) -> int:
        """Print one line per person, also with `--json`."""
        users = items(api, f"{self.of.path_of(arguments)}/{self.name}", "users", {})
        return await print_stream(arguments, users, self.line)

    async def add(self, api: HttpClient, arguments: Namespace) -> int:
        return await self._each(api, arguments, "PUT", "added")

    async def remove(self, api: HttpClient, arguments: Namespace) -> int:
        return await self._each(api, arguments, "DELETE", "removed")

    async def _each(self, api: HttpClient, arguments: Namespace, method: str, done: str) -> int:
        """Make one call per member. Stop at the first that is refused; a repeat of the command is safe."""
        for member in getattr(arguments, self.argument):
            await api.call(method, f"{self.of.path_of(arguments)}/{self.name}/{quoted(member)}")
            print_result(arguments, {done: parse_id(member)}, f"{done} {member}")
        return SUCCESS


Item = Mapping[str, Any]


def format_user_line(user: Item) -> str:
    parts = (str(user["id"]), user["name"] or "(no name)", user["role"] or "", user["email"] or "")
    parts = (*parts, "blocked" if user.get("blocked") else "", *user.get("external_ids", ()))
    return "  ".join(part for part in parts if part)


def format_user(user: Item) -> str:
    """Return a person with all fields, one per line."""
    return "\n".join(f"{name:<9} {value}" for name, value in _fields(user))


def _fields(user: Item) -> Iterator[tuple[str, str]]:
    yield from _identity(user)
    for channel, addresses in user["contacts"].items():
        yield "contact", ", ".join(f"{channel}:{address}" for address in addresses)
    if user.get("hours"):
        yield "hours", user["hours"]
    if user["opt_out"]:
        yield "opt-out", ", ".join(user["opt_out"])
    blocked = user.get("blocked_guardians", [])
    if guardians := dict.fromkeys([*user.get("guardians", []), *blocked]):
        yield "guardians", ", ".join(f"{one} (blocked)" if one in blocked else one for one in guardians)
    for name, value in user.get("fields", {}).items():
        yield f"field {name}", value


def _identity(user: Item) -> Iterator[tuple[str, str]]:
    for name in ("id", "name", "email", "role", "locale"):
        if user[name] is not None:
            yield name, str(user[name])
    if user.get("blocked"):
        yield "blocked", "gets nothing, cannot sign in or send"
    if user.get("external_ids"):
        yield "known as", ", ".join(user["external_ids"])


def format_group(group: Item) -> str:
    return _titled(group) + ("  virtual" if group["virtual"] else "")


def format_supergroup(supergroup: Item) -> str:
    """Return a supergroup in one line, with its groups."""
    return f"{_titled(supergroup)}: {', '.join(map(str, supergroup['groups'])) or 'no groups'}"


def _titled(item: Item) -> str:
    return f"{item['id']}  {item['title']}" if item["title"] else str(item["id"])
