"""The verbs contact and owner: list, add and remove the contacts of a person, and what it may write to, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from cli.client.http_client import HttpClient, quoted
from cli.client.verbs import over_http, parse_id, print_all, print_result
from cli.command import WRONG_USAGE, Command, CommandFailed
from cli.commands.directory.users import split_contact


def declare_of_person(
    parser: ArgumentParser, helps: Mapping[str, str], argument: str, metavar: str, example: str
) -> None:
    """Declare the actions of a verb. `helps`: the help of list, add and remove; `argument`: what add and remove take
    besides the person.
    """
    verbs = parser.add_subparsers(dest="action", required=True, metavar="|".join(helps))
    for action, text in helps.items():
        subparser = verbs.add_parser(action, help=text)
        subparser.add_argument("user", metavar="USER", help="the id of the person")
        if action != "list":
            subparser.add_argument(argument, metavar=metavar, help=f"for example {example}")


async def list_of_person(
    api: HttpClient, arguments: Namespace, collection: str, line: Callable[[Mapping[str, Any]], str]
) -> int:
    """Print one line per object of `/v1/<collection>`, also with `--json`."""
    found = await api.call("GET", f"/v1/{collection}", query={"user": arguments.user})
    return print_all(arguments, found[collection], line)


def declare_contact(parser: ArgumentParser) -> None:
    helps = {
        "list": "list the contacts of a person",
        "add": "add a contact to a person; the others stay",
        "remove": "remove this one contact of a person",
    }
    declare_of_person(parser, helps, "contact", "CHANNEL:ADDRESS", "telegram:100001")


async def run_contact(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_contacts, "add": add_contact, "remove": remove_contact}[arguments.action](api, arguments)


async def list_contacts(api: HttpClient, arguments: Namespace) -> int:
    return await list_of_person(api, arguments, "contacts", lambda one: f"{one['channel']}:{one['address']}")


async def add_contact(api: HttpClient, arguments: Namespace) -> int:
    channel, address = split_contact(arguments.contact)
    body = {"user": parse_id(arguments.user), "channel": channel, "address": address}
    contact = await api.call("POST", "/v1/contacts", body)
    return print_result(arguments, contact, f"added {contact['channel']}:{contact['address']} to {arguments.user}")


async def remove_contact(api: HttpClient, arguments: Namespace) -> int:
    channel, address = split_contact(arguments.contact)
    await api.call("DELETE", "/v1/contacts/" + "/".join(map(quoted, (arguments.user, channel, address))))
    removed = {"user": parse_id(arguments.user), "channel": channel, "address": address}
    return print_result(arguments, {"removed": removed}, f"removed {arguments.contact} of {arguments.user}")


_KINDS = ("group", "supergroup")


def declare_owner(parser: ArgumentParser) -> None:
    helps = {
        "list": "list the groups and supergroups that a person may write to",
        "add": "let a person write to a group, or to a supergroup of which the person owns every group",
        "remove": "withdraw that; for a group also the person's supergroups that contain it",
    }
    declare_of_person(parser, helps, "object", "group:ID|supergroup:ID", "group:ИВТ-21")


async def run_owner(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_owned, "add": add_owned, "remove": remove_owned}[arguments.action](api, arguments)


async def list_owned(api: HttpClient, arguments: Namespace) -> int:
    return await list_of_person(api, arguments, "ownerships", lambda one: f"{one['kind']}:{one['id']}")


async def add_owned(api: HttpClient, arguments: Namespace) -> int:
    return await _change(api, arguments, "PUT", "added")


async def remove_owned(api: HttpClient, arguments: Namespace) -> int:
    return await _change(api, arguments, "DELETE", "removed")


async def _change(api: HttpClient, arguments: Namespace, method: str, done: str) -> int:
    kind, object_id = split_object(arguments.object)
    await api.call(method, "/v1/ownerships/" + "/".join(map(quoted, (arguments.user, kind, object_id))))
    owned = {"user": parse_id(arguments.user), "kind": kind, "id": parse_id(object_id)}
    return print_result(arguments, {done: owned}, f"{done} {arguments.object}")


def split_object(given: str) -> tuple[str, str]:
    """Split `group:ИВТ-21` into kind and id. Raises CommandFailed."""
    kind, _, object_id = given.partition(":")
    if kind not in _KINDS or not object_id:
        raise CommandFailed(f"{given!r} is neither group:ID nor supergroup:ID", WRONG_USAGE)
    return kind, object_id


COMMANDS: Mapping[str, Command] = {
    "contact": Command(declare_contact, over_http(run_contact)),
    "owner": Command(declare_owner, over_http(run_owner)),
}
