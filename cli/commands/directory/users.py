"""The verbs user, contact and owner: people, their contacts, and to which groups they may write.

They call a running Ada over HTTP.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from cli.client.format_history import reachable, shorten
from cli.client.http_client import HttpClient, JsonObject, items, quoted
from cli.client.local_times import in_zone, zone_of
from cli.client.verbs import over_http, parse_id, print_all, print_result, print_stream
from cli.command import WRONG_USAGE, Command, CommandFailed
from cli.commands.directory.resources import Resource, format_user, format_user_line

_LIMIT = 20
_FIELDS = ("name", "email", "role", "locale")


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|add|change|remove|merge|deliveries|fields|define|undefine"
    )
    list_parser = verbs.add_parser("list", help="list people: all, or those that match the options")
    list_parser.add_argument("--name", help="people with words in their name that begin so")
    list_parser.add_argument("--email", help="the person with this e-mail address")
    list_parser.add_argument("--external-id", metavar="SYSTEM:ID", help="the person that another system calls so")
    list_parser.add_argument("--contact", metavar="CHANNEL:ADDRESS", help="the person with this contact")
    list_parser.add_argument("--group", metavar="ID", help="the members of this group")
    list_parser.add_argument("--role", help="people with this role: student, trainer, staff or admin")
    list_parser.add_argument("--guardian", metavar="ID", help="the children of this person")
    list_parser.add_argument("--where", metavar="CONDITIONS", help="people with such own fields: 'course=2; mark>=4.5'")
    show_parser = verbs.add_parser("show", help="show one person with all contacts")
    add_parser = verbs.add_parser("add", help="add a person")
    change_parser = verbs.add_parser("change", help="change a person; what is not given stays")
    remove_parser = verbs.add_parser("remove", help="delete a person with its contacts, memberships and ownerships")
    merge_parser = verbs.add_parser("merge", help="make one person of two; shows what that does, --yes does it")
    merge_parser.add_argument("--yes", action="store_true", help="do it")
    deliveries_parser = verbs.add_parser("deliveries", help="list what was sent to a person, newest first")
    deliveries_parser.add_argument("--limit", type=int, default=_LIMIT, help=f"the largest number ({_LIMIT})")
    add_parser.add_argument("id", metavar="ID", nargs="?", help="left out: the server gives one")
    for subparser in (show_parser, change_parser, remove_parser, merge_parser, deliveries_parser):
        subparser.add_argument("id", metavar="ID")
    declare_types(verbs)
    merge_parser.add_argument("other", metavar="OTHER", help="the person that is deleted")
    for subparser in (add_parser, change_parser):
        declare_fields(subparser)


def declare_types(verbs: Any) -> None:
    verbs.add_parser("fields", help="list the own fields that have a type")
    define_parser = verbs.add_parser("define", help="give an own field a type, or another one")
    undefine_parser = verbs.add_parser("undefine", help="make an own field text again; its values stay")
    for subparser in (define_parser, undefine_parser):
        subparser.add_argument("field", metavar="FIELD")
    define_parser.add_argument("type", choices=("text", "number", "date", "choice"))
    define_parser.add_argument("choices", metavar="OPTION", nargs="*", help="of a choice")


def declare_fields(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", help='the name, "" for none')
    add("--email", metavar="ADDRESS", help='the e-mail address, "" for none')
    add("--role", help='student, trainer, staff or admin, "" for none')
    add("--blocked", choices=("yes", "no"), help="whether it gets nothing, cannot sign in and cannot send")
    add("--locale", help="the language of mails and of the bot: ru or en")
    add("--hours", metavar="HOURS", help="when it wants messages: '08:00-22:00 Europe/Moscow'; \"\" for any time")
    add(
        "--contact",
        action="append",
        metavar="CHANNEL:ADDRESS",
        help="a contact, for example telegram:100001; repeat for several. They replace all that the person has "
        "(`ada contact` adds and removes single ones)",
    )
    add(
        "--field",
        action="append",
        metavar="NAME=VALUE",
        help="a field of its own for personal texts, for example course=2; repeat for several. They replace all",
    )
    add(
        "--opt-out",
        action="append",
        metavar="CHANNEL",
        help='a channel in which the person wants no messages, "" for none; repeat for several',
    )
    add("--guardian", action="append", metavar="ID", help='a guardian of this child, "" for none; repeat for several')
    add(
        "--blocked-guardian",
        action="append",
        metavar="ID",
        help='a person that gets nothing about this child, "" for none; repeat for several',
    )


def given_fields(arguments: Namespace) -> dict[str, Any]:
    """Return the fields that were given; an empty text clears a field."""
    fields: dict[str, Any] = {
        name: value or None for name in _FIELDS if (value := getattr(arguments, name)) is not None
    }
    if arguments.contact is not None:
        fields["contacts"] = contacts_of(arguments.contact)
    if arguments.opt_out is not None:
        fields["opt_out"] = [channel for channel in arguments.opt_out if channel]
    for option, name in (("guardian", "guardians"), ("blocked_guardian", "blocked_guardians")):
        if (named := getattr(arguments, option)) is not None:
            fields[name] = [parse_id(one) for one in named if one]
    if arguments.field is not None:
        fields["fields"] = {name: value for name, _, value in (one.partition("=") for one in arguments.field)}
    if arguments.hours is not None:
        fields["hours"] = arguments.hours
    if arguments.blocked is not None:
        fields["blocked"] = arguments.blocked == "yes"
    return fields


def contacts_of(given: list[str]) -> dict[str, list[str]]:
    contacts: dict[str, list[str]] = {}
    for one in given:
        channel, address = split_contact(one)
        contacts.setdefault(channel, []).append(address)
    return contacts


def split_contact(given: str) -> tuple[str, str]:
    """Split `telegram:100001` into channel and address. Raises CommandFailed."""
    channel, _, address = given.partition(":")
    if not channel or not address:
        raise CommandFailed(f"{given!r} is not CHANNEL:ADDRESS, for example telegram:100001", WRONG_USAGE)
    return channel, address


USERS = Resource(
    "users",
    format_user_line,
    format_user,
    given_fields,
    given_fields,
    "change what? Give at least one option, for example --name",
    filters=("name", "email", "contact", "external_id", "group", "role", "guardian", "where"),
)


async def merge(api: HttpClient, arguments: Namespace) -> int:
    """Show what becomes of two people, and with `--yes` do it."""
    body, query = {"other": parse_id(arguments.other)}, {} if arguments.yes else {"dry_run": ""}
    done = await api.call("POST", f"{USERS.path_of(arguments)}:merge", body, query)
    return print_result(arguments, done, f"{'merged' if arguments.yes else 'would become'} {describe_merge(done)}")


def describe_merge(merged: JsonObject) -> str:
    lines = [format_user_line(merged["user"])]
    brought = {name: merged[name] for name in ("groups", "jobs") if merged[name]}
    lines += [f"{name} of {merged['other']['id']}: {', '.join(map(str, some))}" for name, some in brought.items()]
    lines += [f"given up: {name} {value}" for name, value in merged["lost"].items()]
    return "\n  ".join(lines)


async def deliveries(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per delivery, also with `--json`."""
    found = items(api, f"{USERS.path_of(arguments)}/deliveries", "deliveries", {}, arguments.limit)
    zone = await zone_of(api, arguments)
    return await print_stream(arguments, found, lambda one: describe_delivery(in_zone(one, zone)))


def describe_delivery(one: JsonObject) -> str:
    outcomes = ", ".join(f"{channel} {outcome['status']}" for channel, outcome in reachable(one).items())
    return f"{one['id']}  {one['created_at']}  {outcomes or 'no contact'}  {shorten(one['text'])!r}"


async def list_fields(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per own field that has a type."""
    found = await api.call("GET", "/v1/fields")
    return print_result(arguments, found, "\n".join(map(describe_field, found["fields"])) or "no field has a type")


async def define(api: HttpClient, arguments: Namespace) -> int:
    body = {"type": arguments.type, "choices": arguments.choices}
    defined = await api.call("PUT", f"/v1/fields/{quoted(arguments.field)}", body)
    return print_result(arguments, defined, f"defined {describe_field(defined)}")


async def undefine(api: HttpClient, arguments: Namespace) -> int:
    await api.call("DELETE", f"/v1/fields/{quoted(arguments.field)}")
    return print_result(arguments, {"undefined": arguments.field}, f"{arguments.field} is text again")


def describe_field(field: JsonObject) -> str:
    return "  ".join([field["name"], field["type"], *([", ".join(field["choices"])] if field["choices"] else [])])


async def name_by_own_id(api: HttpClient, arguments: Namespace) -> None:
    """Put the id of a person in place of its external id, such as `1c:42`, as `send --to` does. An id that belongs to a
    person is that person's.
    """
    given = str(getattr(arguments, "id", ""))
    if arguments.action == "add" or ":" not in given:
        return
    people = (await api.call("GET", "/v1/users", query={"external_id": given}))["users"]
    if people:
        try:
            await api.call("GET", USERS.path_of(arguments))
        except CommandFailed:
            arguments.id = str(people[0]["id"])


async def run(api: HttpClient, arguments: Namespace) -> int:
    await name_by_own_id(api, arguments)
    if arguments.action in _FURTHER:
        return await _FURTHER[arguments.action](api, arguments)
    return await USERS.actions[arguments.action](api, arguments)


_FURTHER = {
    "merge": merge,
    "deliveries": deliveries,
    "fields": list_fields,
    "define": define,
    "undefine": undefine,
}


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
    "user": Command(declare, over_http(run)),
    "contact": Command(declare_contact, over_http(run_contact)),
    "owner": Command(declare_owner, over_http(run_owner)),
}
