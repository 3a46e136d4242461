"""The verb supergroup: shows and changes sets of groups, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.client.format_directory import format_supergroup
from cli.client.http_client import HttpClient
from cli.client.pages import items, quoted
from cli.command import SUCCESS, Command, add_json_option
from cli.commands.messages.deliveries import over_http, parse_id, print_result


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|add|change|remove|add-group|remove-group"
    )
    verbs.add_parser("list", help="list all supergroups with their groups")
    verbs.add_parser("show", help="show one supergroup with its groups")
    add_parser = verbs.add_parser("add", help="add a supergroup of existing groups")
    change_parser = verbs.add_parser("change", help="change the title of a supergroup")
    verbs.add_parser("remove", help="delete a supergroup; its groups stay")
    add_group_parser = verbs.add_parser("add-group", help="add groups to it; each of its owners must own them")
    remove_group_parser = verbs.add_parser("remove-group", help="take groups out of it")
    for name, subparser in verbs.choices.items():
        add_json_option(subparser, default=SUPPRESS)
        if name != "list":
            subparser.add_argument("id", metavar="ID", help="the id of the supergroup")
    add_parser.add_argument("--title", help="the title")
    add_parser.add_argument("--group", action="append", metavar="GROUP", help="a group; repeat for several")
    change_parser.add_argument("--title", required=True, help='the new title, "" for none')
    for subparser in (add_group_parser, remove_group_parser):
        subparser.add_argument("group", nargs="+", metavar="GROUP", help="the id of a group")


async def run(api: HttpClient, arguments: Namespace) -> int:
    actions = {
        "list": list_all,
        "show": show,
        "add": add,
        "change": change,
        "remove": remove,
        "add-group": add_groups,
        "remove-group": remove_groups,
    }
    return await actions[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per supergroup, also with `--json`."""
    async for supergroup in items(api, "/v1/supergroups", "supergroups", {}):
        print_result(supergroup, arguments.json, format_supergroup(supergroup))
    return SUCCESS


async def show(api: HttpClient, arguments: Namespace) -> int:
    supergroup = await api.call("GET", path_of(arguments))
    print_result(supergroup, arguments.json, format_supergroup(supergroup))
    return SUCCESS


async def add(api: HttpClient, arguments: Namespace) -> int:
    body: dict[str, Any] = {"id": parse_id(arguments.id), "groups": [parse_id(one) for one in arguments.group or []]}
    if arguments.title:
        body["title"] = arguments.title
    supergroup = await api.call("POST", "/v1/supergroups", body)
    print_result(supergroup, arguments.json, f"added {format_supergroup(supergroup)}")
    return SUCCESS


async def change(api: HttpClient, arguments: Namespace) -> int:
    supergroup = await api.call("PATCH", path_of(arguments), {"title": arguments.title or None})
    print_result(supergroup, arguments.json, f"changed {format_supergroup(supergroup)}")
    return SUCCESS


async def remove(api: HttpClient, arguments: Namespace) -> int:
    await api.call("DELETE", path_of(arguments))
    print_result({"removed": parse_id(arguments.id)}, arguments.json, f"removed {arguments.id}")
    return SUCCESS


async def add_groups(api: HttpClient, arguments: Namespace) -> int:
    return await _each_group(api, arguments, "PUT", "added")


async def remove_groups(api: HttpClient, arguments: Namespace) -> int:
    return await _each_group(api, arguments, "DELETE", "removed")


async def _each_group(api: HttpClient, arguments: Namespace, method: str, done: str) -> int:
    """One call per group. Stops at the first that is refused; a repeat of the command is safe."""
    for group in arguments.group:
        await api.call(method, f"{path_of(arguments)}/groups/{quoted(group)}")
        print_result({done: parse_id(group)}, arguments.json, f"{done} {group}")
    return SUCCESS


def path_of(arguments: Namespace) -> str:
    return f"/v1/supergroups/{quoted(arguments.id)}"


COMMANDS: Mapping[str, Command] = {"supergroup": Command(declare, over_http(run))}
