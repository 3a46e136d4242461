"""The verb group: shows and changes groups and their members, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.client.format_directory import format_group, format_user_line
from cli.client.http_client import HttpClient
from cli.client.pages import items, quoted
from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed, add_json_option
from cli.commands.messages.deliveries import over_http, parse_id, print_result


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|add|change|remove|members|add-member|remove-member"
    )
    verbs.add_parser("list", help="list all groups")
    verbs.add_parser("show", help="show one group")
    add_parser = verbs.add_parser("add", help="add a group")
    change_parser = verbs.add_parser("change", help="change a group; what is not given stays")
    verbs.add_parser("remove", help="delete a group; its members stay in the directory")
    verbs.add_parser("members", help="list the members of a group")
    add_member_parser = verbs.add_parser("add-member", help="add people to a group")
    remove_member_parser = verbs.add_parser("remove-member", help="take people out of a group")
    for name, subparser in verbs.choices.items():
        add_json_option(subparser, default=SUPPRESS)
        if name != "list":
            subparser.add_argument("id", metavar="ID", help="the id of the group")
    for subparser in (add_parser, change_parser):
        subparser.add_argument("--title", help='the title, "" for none')
        subparser.add_argument("--virtual", dest="virtual", action="store_true", default=None,
                               help="only to address people: recipients do not see this group")  # fmt: skip
    change_parser.add_argument("--not-virtual", dest="virtual", action="store_false", default=None,
                               help="a usual group again")  # fmt: skip
    add_parser.add_argument("--member", action="append", metavar="USER", help="a first member; repeat for several")
    for subparser in (add_member_parser, remove_member_parser):
        subparser.add_argument("user", nargs="+", metavar="USER", help="the id of a person")


async def run(api: HttpClient, arguments: Namespace) -> int:
    actions = {
        "list": list_all,
        "show": show,
        "add": add,
        "change": change,
        "remove": remove,
        "members": members,
        "add-member": add_members,
        "remove-member": remove_members,
    }
    return await actions[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per group, also with `--json`."""
    async for group in items(api, "/v1/groups", "groups", {}):
        print_result(group, arguments.json, format_group(group))
    return SUCCESS


async def show(api: HttpClient, arguments: Namespace) -> int:
    group = await api.call("GET", path_of(arguments))
    print_result(group, arguments.json, format_group(group))
    return SUCCESS


async def add(api: HttpClient, arguments: Namespace) -> int:
    body = {"id": parse_id(arguments.id), **given_fields(arguments)}
    if arguments.member:
        body["members"] = [parse_id(user) for user in arguments.member]
    group = await api.call("POST", "/v1/groups", body)
    print_result(group, arguments.json, f"added {format_group(group)}")
    return SUCCESS


async def change(api: HttpClient, arguments: Namespace) -> int:
    fields = given_fields(arguments)
    if not fields:
        raise CommandFailed("change what? Give --title, --virtual or --not-virtual", WRONG_USAGE)
    group = await api.call("PATCH", path_of(arguments), fields)
    print_result(group, arguments.json, f"changed {format_group(group)}")
    return SUCCESS


async def remove(api: HttpClient, arguments: Namespace) -> int:
    await api.call("DELETE", path_of(arguments))
    print_result({"removed": parse_id(arguments.id)}, arguments.json, f"removed {arguments.id}")
    return SUCCESS


async def members(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per person, also with `--json`."""
    async for user in items(api, f"{path_of(arguments)}/members", "users", {}):
        print_result(user, arguments.json, format_user_line(user))
    return SUCCESS


async def add_members(api: HttpClient, arguments: Namespace) -> int:
    return await _each_member(api, arguments, "PUT", "added")


async def remove_members(api: HttpClient, arguments: Namespace) -> int:
    return await _each_member(api, arguments, "DELETE", "removed")


async def _each_member(api: HttpClient, arguments: Namespace, method: str, done: str) -> int:
    """One call per person. Stops at the first that is refused; a repeat of the command is safe."""
    for user in arguments.user:
        await api.call(method, f"{path_of(arguments)}/members/{quoted(user)}")
        print_result({done: parse_id(user)}, arguments.json, f"{done} {user}")
    return SUCCESS


def path_of(arguments: Namespace) -> str:
    return f"/v1/groups/{quoted(arguments.id)}"


def given_fields(arguments: Namespace) -> dict[str, Any]:
    fields: dict[str, Any] = {} if arguments.title is None else {"title": arguments.title or None}
    return fields if arguments.virtual is None else {**fields, "virtual": arguments.virtual}


COMMANDS: Mapping[str, Command] = {"group": Command(declare, over_http(run))}
