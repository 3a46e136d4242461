"""The verb supergroup: shows and changes sets of groups, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.client.format_directory import format_supergroup
from cli.client.http_client import HttpClient
from cli.command import Command, add_json_option
from cli.commands.directory.resources import Action, Members, Resource
from cli.commands.messages.deliveries import over_http, parse_id


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


def given_fields(arguments: Namespace) -> dict[str, Any]:
    return {} if arguments.title is None else {"title": arguments.title or None}


def new_fields(arguments: Namespace) -> dict[str, Any]:
    return {**given_fields(arguments), "groups": [parse_id(group) for group in arguments.group or []]}


SUPERGROUPS = Resource(
    "supergroups", format_supergroup, format_supergroup, given_fields, new_fields, "change what? Give --title"
)
GROUPS = Members(SUPERGROUPS, "groups", "group")
ACTIONS: Mapping[str, Action] = {**SUPERGROUPS.actions, "add-group": GROUPS.add, "remove-group": GROUPS.remove}


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await ACTIONS[arguments.action](api, arguments)


COMMANDS: Mapping[str, Command] = {"supergroup": Command(declare, over_http(run))}
