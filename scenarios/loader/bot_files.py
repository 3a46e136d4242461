"""Reads the files about the bot as a whole: bot.yaml (commands, roles, time zone), settings.yaml, where later dialects
have commands and roles, and variables.yaml, the variables of people, chats and runs (C-93).

    person:
      name: text
      age: {type: number}
      course: {type: choice, options: [first, second]}
      visits: {type: number, default: 0, expire: 30d}
"""

import re
from collections.abc import Mapping
from zoneinfo import available_timezones

from msgspec import Struct

from scenarios.bot import BotCommand, Role
from scenarios.bot.data import MapNode, Node, Scalar, is_empty, plain
from scenarios.bot.model import SCOPES, TYPES, Variable
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.times import read_duration
from scenarios.loader.reading import Reader, as_int
from scenarios.schema.variables import VariableFault, fitted
from scenarios.words import LANGUAGES, placed, sentence

COMMAND_SCOPES = (
    "default",
    "all_private_chats",
    "all_group_chats",
    "all_chat_administrators",
    "chat",
    "chat_administrators",
    "chat_member",
)
COMMAND_FIELDS = ("command", "description", "scope", "chat_id", "user_id")
_PARTS = ("commands", "roles", "timezone", "language")
ROLE_FIELDS = ("description", "permissions", "users")
COMMANDS_SECTION, ROLES_SECTION = "tg_command_registry", "permission_manager"
"""The sections of settings.yaml in which later versions keep commands and roles."""


class BotFile(Struct, frozen=True):
    """The content of bot.yaml. `timezone`: "" for that of the installation. `language`: "" if it names none."""

    commands: tuple[BotCommand, ...] = ()
    roles: Mapping[str, Role] = {}
    timezone: str = ""
    language: str = ""


def read_bot_file(reader: Reader, root: Node | None) -> BotFile:
    found = {key.text: node for key, node in reader.pairs(root, "bot.yaml")}
    for key, node in reader.pairs(root, "bot.yaml"):
        if key.text not in _PARTS and not is_empty(node):
            reader.unknown(key, _PARTS, "UNKNOWN_SECTION", sentence("part_bot_yaml_commands"))
    commands, roles = read_commands(reader, found.get("commands")), read_roles(reader, found.get("roles"))
    language = read_language(reader, found.get("language"))
    return BotFile(commands, roles, read_timezone(reader, found.get("timezone")), language)


def read_language(reader: Reader, node: Node | None) -> str:
    """Return the language of a bot; "" for none, or an unknown one, which is reported."""
    name = reader.text(node, "language") or ""
    if node is None or not name or name in LANGUAGES:
        return name
    reader.error(node, "UNKNOWN_LANGUAGE", sentence("no_language", name=name, words=", ".join(LANGUAGES)))
    return ""


def read_timezone(reader: Reader, node: Node | None) -> str:
    """Return the name of a time zone; "" for none, or an unknown one, which is reported."""
    name = reader.text(node, "timezone") or ""
    if node is None or not name or name in available_timezones():
        return name
    message = did_you_mean(sentence("no_time_zone", name=name), name, sorted(available_timezones()))
    reader.error(node, "UNKNOWN_TIMEZONE", message)
    return ""


def read_settings_file(reader: Reader, root: Node | None) -> tuple[tuple[BotCommand, ...], dict[str, Role]]:
    sections = {key.text: node for key, node in reader.pairs(root, "settings.yaml")}
    commands = inner(sections.get(COMMANDS_SECTION), "commands")
    roles = inner(sections.get(ROLES_SECTION), "roles")
    return read_commands(reader, commands), read_roles(reader, roles)


def inner(section: Node | None, name: str) -> Node | None:
    return section.get(name) if isinstance(section, MapNode) else None


def read_commands(reader: Reader, node: Node | None) -> tuple[BotCommand, ...]:
    commands = []
    for item in reader.items(node, "commands"):
        pairs = reader.pairs(item, sentence("command"))
        for key, _ in pairs:
            if key.text not in COMMAND_FIELDS:
                reader.unknown(key, COMMAND_FIELDS, "UNKNOWN_FIELD", sentence("field_command"))
        if (command := read_command(reader, item)) is not None:
            commands.append(command)
    return tuple(commands)


def read_command(reader: Reader, node: Node) -> BotCommand | None:
    """Return the command, or None if its name, description or scope is wrong, which is reported."""
    if not isinstance(node, MapNode):
        return None
    name = command_name(reader, node)
    description = reader.text(node.get("description"), "description")
    if description is None:
        reader.error(node, "MISSING_FIELD", sentence("command_has_no_description"))
    command = BotCommand(
        name or "",
        description or "",
        reader.text(node.get("scope"), "scope") or "default",
        chat_of(reader, node.get("chat_id")),
        reader.number(node.get("user_id"), "user_id"),
    )
    return command if scope_is_complete(reader, node, command) and name and description else None


def command_name(reader: Reader, node: MapNode) -> str | None:
    name = reader.text(node.get("command"), "command")
    if name is None:
        reader.error(node, "MISSING_FIELD", sentence("entry_has_no_command"))
        return None
    name = name.removeprefix("/")
    if re.fullmatch(r"[a-z0-9_]{1,32}", name):
        return name
    reader.error(node.get("command") or node, "BAD_COMMAND", sentence("not_letters_z_digits", name=name))
    return None


def chat_of(reader: Reader, node: Node | None) -> int | str | None:
    """Return the id of a chat, or its @name."""
    if isinstance(node, Scalar) and node.text.startswith("@"):
        return node.text
    return reader.number(node, "chat_id")


def scope_is_complete(reader: Reader, node: MapNode, command: BotCommand) -> bool:
    """Return whether the scope is known and its chat and user are there; reports what is missing."""
    if command.scope not in COMMAND_SCOPES:
        scope = node.get("scope") or node
        reader.error(
            scope,
            "UNKNOWN_SCOPE",
            sentence("is_not", name=repr(command.scope), text=sentence("one_of", words=", ".join(COMMAND_SCOPES))),
        )
        return False
    if command.scope.startswith("chat") and command.chat_id is None:
        reader.error(node, "MISSING_FIELD", sentence("scope_needs_chat_id", scope=command.scope))
        return False
    if command.scope == "chat_member" and command.user_id is None:
        reader.error(node, "MISSING_FIELD", sentence("scope_chat_member_needs_user_id"))
        return False
    return True


def read_roles(reader: Reader, node: Node | None) -> dict[str, Role]:
    return {key.text: read_role(reader, key, value) for key, value in reader.pairs(node, "roles")}


def read_role(reader: Reader, name: Scalar, node: Node) -> Role:
    fields = {}
    for key, value in reader.pairs(node, sentence("role", name=name.text)):
        fields[key.text] = value
        if key.text not in ROLE_FIELDS:
            reader.unknown(key, ROLE_FIELDS, "UNKNOWN_FIELD", sentence("field_role"))
    permissions = [reader.text(item, sentence("permission")) for item in reader.one_or_many(fields.get("permissions"))]
    users = [user_id(reader, item) for item in reader.one_or_many(fields.get("users"))]
    return Role(
        name.text,
        reader.text(fields.get("description"), "description") or "",
        tuple(permission for permission in permissions if permission),
        tuple(user for user in users if user is not None),
    )


def user_id(reader: Reader, node: Node) -> int | None:
    """Return the id of a user; a variable that is not set, which is reported elsewhere, is left out."""
    if isinstance(node, Scalar) and as_int(node) is None and node.text.startswith("${"):
        return None
    return reader.number(node, sentence("user_id"))


VARIABLE_FIELDS = ("type", "options", "default", "expire")
_NAME = re.compile(r"[^\W\d]\w{0,63}")


def read_variables(reader: Reader, root: Node | None) -> dict[str, Variable]:
    """Return the variables by their full names, such as `person.age`. What is wrong is reported and left out."""
    found = {}
    for scope, names in reader.pairs(root, "variables.yaml"):
        if scope.text not in SCOPES:
            reader.unknown(scope, SCOPES, "UNKNOWN_SECTION", sentence("part_variables_yaml", words=", ".join(SCOPES)))
            continue
        for name, node in reader.pairs(names, scope.text):
            if _NAME.fullmatch(name.text) is None:
                reader.wrong(name, sentence("variable_name"), sentence("letters_digits_underscore"))
            elif (variable := read_variable(reader, name, node)) is not None:
                found[f"{scope.text}.{name.text}"] = variable
    return found


def read_variable(reader: Reader, name: Scalar, node: Node) -> Variable | None:
    """Return a declaration: the name of its type, or a mapping."""
    fields: dict[str, Node] = (
        {key.text: value for key, value in node.pairs} if isinstance(node, MapNode) else {"type": node}
    )
    for key, _ in node.pairs if isinstance(node, MapNode) else ():
        if key.text not in VARIABLE_FIELDS:
            reader.unknown(key, VARIABLE_FIELDS, "UNKNOWN_FIELD", sentence("field_variable"))
    options = tuple(
        text for one in reader.one_or_many(fields.get("options")) if (text := reader.text(one, sentence("option")))
    )
    kind = reader.text(fields.get("type"), "type") or ("choice" if options else "text")
    if kind not in TYPES:
        reader.wrong(
            fields.get("type") or node, sentence("type_of", name=name.text), sentence("one_of", words=", ".join(TYPES))
        )
        return None
    if kind == "choice" and not options:
        reader.error(node, "MISSING_FIELD", sentence("choice_needs_options_such", name=name.text))
        return None
    return with_default(reader, Variable(kind, options, expire=lifetime(reader, fields.get("expire"))), fields)


def lifetime(reader: Reader, node: Node | None) -> int:
    """Return a lifetime in seconds, 0 for none."""
    text = reader.text(node, "expire")
    duration = read_duration(text) if text else None
    if text and duration is None and node is not None:
        reader.wrong(node, "expire", sentence("duration_example_d_2"))
    return int(duration.total_seconds()) if duration else 0


def with_default(reader: Reader, variable: Variable, fields: dict[str, Node]) -> Variable:
    node = fields.get("default")
    value = plain(node) if node is not None else None
    if node is None or value is None:
        return variable
    try:
        default = fitted(value, variable, None)
    except VariableFault as fault:
        reader.error(node, "WRONG_TYPE", placed("default", fault.said))
        return variable
    return Variable(variable.type, variable.options, default, variable.expire)
