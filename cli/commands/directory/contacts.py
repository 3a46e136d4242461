"""The verb contact: shows, adds and removes single contacts of a person, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient
from cli.client.pages import quoted
from cli.command import SUCCESS, Command
from cli.commands.directory.of_person import declare_of_person, list_of_person
from cli.commands.directory.users import split_contact
from cli.commands.messages.deliveries import over_http, parse_id, print_result


def declare(parser: ArgumentParser) -> None:
    helps = {
        "list": "list the contacts of a person",
        "add": "add a contact to a person; the others stay",
        "remove": "remove this one contact of a person",
    }
    declare_of_person(parser, helps, "contact", "CHANNEL:ADDRESS", "telegram:100001")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "add": add, "remove": remove}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    return await list_of_person(api, arguments, "contacts", lambda one: f"{one['channel']}:{one['address']}")


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
