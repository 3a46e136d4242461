"""The verbs group and supergroup: show and change groups, their members, and sets of groups, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.client.http_client import HttpClient
from cli.client.verbs import over_http, parse_id
from cli.command import Command
from cli.commands.directory.resources import (
    Action,
    Members,
    Resource,
    format_group,
    format_supergroup,
    format_user_line,
)


def declare_group(parser: ArgumentParser) -> None:
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


def group_fields(arguments: Namespace) -> dict[str, Any]:
    fields: dict[str, Any] = {} if arguments.title is None else {"title": arguments.title or None}
    return fields if arguments.virtual is None else {**fields, "virtual": arguments.virtual}


def new_group_fields(arguments: Namespace) -> dict[str, Any]:
    return {**group_fields(arguments), "members": [parse_id(user) for user in arguments.member or []]}


GROUPS = Resource(
    "groups",
    format_group,
    format_group,
    group_fields,
    new_group_fields,
    "change what? Give --title, --virtual or --not-virtual",
)
MEMBERS = Members(GROUPS, "members", "user", format_user_line)
GROUP_ACTIONS: Mapping[str, Action] = {
    **GROUPS.actions,
    "members": MEMBERS.list_all,
    "add-member": MEMBERS.add,
    "remove-member": MEMBERS.remove,
}


async def run_group(api: HttpClient, arguments: Namespace) -> int:
    return await GROUP_ACTIONS[arguments.action](api, arguments)


def declare_supergroup(parser: ArgumentParser) -> None:
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
        if name != "list":
            subparser.add_argument("id", metavar="ID", help="the id of the supergroup")
    add_parser.add_argument("--title", help="the title")
    add_parser.add_argument("--group", action="append", metavar="GROUP", help="a group; repeat for several")
    change_parser.add_argument("--title", required=True, help='the new title, "" for none')
    for subparser in (add_group_parser, remove_group_parser):
        subparser.add_argument("group", nargs="+", metavar="GROUP", help="the id of a group")


def supergroup_fields(arguments: Namespace) -> dict[str, Any]:
    return {} if arguments.title is None else {"title": arguments.title or None}


def new_supergroup_fields(arguments: Namespace) -> dict[str, Any]:
    return {**supergroup_fields(arguments), "groups": [parse_id(group) for group in arguments.group or []]}


SUPERGROUPS = Resource(
    "supergroups",
    format_supergroup,
    format_supergroup,
    supergroup_fields,
    new_supergroup_fields,
    "change what? Give --title",
)
GROUPS_OF_SUPERGROUP = Members(SUPERGROUPS, "groups", "group")
SUPERGROUP_ACTIONS: Mapping[str, Action] = {
    **SUPERGROUPS.actions,
    "add-group": GROUPS_OF_SUPERGROUP.add,
    "remove-group": GROUPS_OF_SUPERGROUP.remove,
}


async def run_supergroup(api: HttpClient, arguments: Namespace) -> int:
    return await SUPERGROUP_ACTIONS[arguments.action](api, arguments)


COMMANDS: Mapping[str, Command] = {
    "group": Command(declare_group, over_http(run_group)),
    "supergroup": Command(declare_supergroup, over_http(run_supergroup)),
}
