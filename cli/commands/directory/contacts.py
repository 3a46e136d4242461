"""The verb contact: shows, adds and removes single contacts of a person, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient
from cli.client.pages import quoted
from cli.command import SUCCESS, Command, add_json_option
from cli.commands.directory.users import split_contact
from cli.commands.messages.deliveries import over_http, parse_id, print_result


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="list|add|remove")
    list_parser = verbs.add_parser("list", help="list the contacts of a person")
    add_parser = verbs.add_parser("add", help="add a contact to a person; the others stay")
    remove_parser = verbs.add_parser("remove", help="remove this one contact of a person")
    for subparser in (list_parser, add_parser, remove_parser):
        subparser.add_argument("user", metavar="USER", help="the id of the person")
        add_json_option(subparser, default=SUPPRESS)
    for subparser in (add_parser, remove_parser):
        subparser.add_argument("contact", metavar="CHANNEL:ADDRESS", help="for example telegram:100001")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "add": add, "remove": remove}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per contact, also with `--json`."""
    found = await api.call("GET", "/v1/contacts", query={"user": arguments.user})
    for contact in found["contacts"]:
        print_result(contact, arguments.json, f"{contact['channel']}:{contact['address']}")
    return SUCCESS


async def add(api: HttpClient, arguments: Namespace) -> int:
    channel, address = split_contact(arguments.contact)
    body = {"user": parse_id(arguments.user), "channel": channel, "address": address}
    contact = await api.call("POST", "/v1/contacts", body)
    print_result(contact, arguments.json, f"added {contact['channel']}:{contact['address']} to {arguments.user}")
    return SUCCESS


async def remove(api: HttpClient, arguments: Namespace) -> int:
    channel, address = split_contact(arguments.contact)
    await api.call("DELETE", "/v1/contacts/" + "/".join(map(quoted, (arguments.user, channel, address))))
    removed = {"user": parse_id(arguments.user), "channel": channel, "address": address}
    print_result({"removed": removed}, arguments.json, f"removed {arguments.contact} of {arguments.user}")
    return SUCCESS


COMMANDS: Mapping[str, Command] = {"contact": Command(declare, over_http(run))}
