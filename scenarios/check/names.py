"""Checks placeholders and names. Placeholders: unknown modifiers, refused parameters, missing braces (C-51, C-56).
Names: fields in placeholders and in the validator's rules, and variables, which must be in variables.yaml with a type
that a written value fits (C-93).

A slip of a known name is an error, and so is a name that the action would see if it had a `chain`. Any other unknown
name is a warning: braces may be meant as they are written.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from core.jobs.states import JobState
from core.model.people import LOCALES, ROLES
from core.model.question import AnswerState
from core.model.states import Reason, Verdict
from core.sentence import sentences
from couriers.channel import channels
from scenarios.actions.variables import lists_of
from scenarios.bot import Bot
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, plain
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.model import SCOPES, split_name
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.check.visible import FAILURE, CheckedStep, Names, VisibleNames, conditions_of
from scenarios.loader.reading import Problems, Reader
from scenarios.placeholders import problems as problems_of_text
from scenarios.placeholders.parser import Mention, mentions, outline
from scenarios.placeholders.values import names_in, starts_in
from scenarios.schema import ActionType
from scenarios.schema.conditions import fields_of, rules_of
from scenarios.schema.types import has_placeholder
from scenarios.schema.variables import VARIABLE, VARIABLES, Declared, VariableFault, change_of
from scenarios.words import Text, placed, sentence

_UNOPENED = re.compile(r"(?<![\w{])([^\W\d]\w*)\}")

WITHOUT_TEXTS = ("type", "chain", "chain_drop", "rules")


def check_texts(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> None:
    """Report mistakes in placeholders as warnings: when the bot runs, such a placeholder stays as it is written. A
    missing brace is an error if the action sees the name; otherwise a single brace may be meant.
    """
    reader = reader_of(step, kind, settings, problems)
    for field, text in placed_texts(step, kind, settings):
        known = step.seen.names(field)
        for problem in problems_of_text(str(text.value)):
            is_certain = problem.code == "BRACE_UNCLOSED" and is_meant(problem.placeholder.strip("{ "), known)
            report = reader.error if is_certain else reader.warning
            report(text, problem.code, placed(problem.placeholder, problem.message))
        for name in names_before_braces(str(text.value)):
            if is_meant(name, known):
                message = sentence("brace_never_opened", name=name)
                reader.error(text, "BRACE_UNOPENED", message)


def is_meant(name: str, known: Names) -> bool:
    """Return whether a name is one of those that the action sees, or a slip of one."""
    return starts_in(name, known) or slip_of(names_in(name)[0], tuple(sorted(known))) is not None


def names_before_braces(text: str) -> list[str]:
    """Return the names before closing braces that belong to no placeholder."""
    return _UNOPENED.findall(outline(text, "{")) if "}" in text else []


def replaces(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data]) -> bool | None:
    """Return how placeholders are replaced in an action, as `ActionType.placeholder` has it."""
    default: bool | None = kind.section(settings)["placeholder"]
    return default if step.action.placeholder is None else step.action.placeholder


def reader_of(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> Reader:
    """Return what reports on the texts of an action. Files of the dialect have braces that nobody replaces in it: where
    they stay as they are written they are no error.
    """
    reader = Warner if replaces(step, kind, settings) is None else Reader
    return reader(step.action.place.file, problems)


class Warner(Reader):
    """Reports errors as warnings."""

    error = Reader.warning


def placed_texts(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data]) -> Iterator[tuple[str, Scalar]]:
    """Emit the texts in which placeholders are replaced, each with its field (C-57)."""
    if replaces(step, kind, settings) is not False:
        for key, value in step.node.pairs:
            yield from ((key.text, text) for text in texts_in(value) if key.text not in WITHOUT_TEXTS)


def texts_in(node: Node) -> Iterator[Scalar]:
    """Yield all texts with braces, also those of the keys: the texts of buttons."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and ("{" in node.value or "}" in node.value):
            yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from texts_in(item)
    elif isinstance(node, MapNode):
        for key, value in node.pairs:
            yield from texts_in(key)
            yield from texts_in(value)


_PROBLEM = "problem."
_OWN = """
ACTION_FAILED ACTION_OFF ACTION_RAISED ACTION_UNKNOWN ADDRESSEE_SEVERAL ADDRESSEE_UNCLEAR ADDRESS_INVALID
AI_NOT_SET_UP ANSWER_INVALID ANSWER_MISSING AUDIO_FILE_NOT_FOUND AUDIO_FILE_OUTSIDE AUDIO_MISSING AUDIO_NOT_FETCHABLE
AUDIO_TOO_LARGE AUDIO_UNAVAILABLE BUTTON_TOO_LONG CERTIFICATE_REFUSED CODE_MALFORMED DELAY_MALFORMED FIELD_EMPTY
FIELD_INVALID FORM_FULL KEY_REFUSED MESSAGE_NOT_SENT NOBODY_NAMED NOTHING_OWNED NOTHING_TO_SEND NOT_ALLOWED NOT_A_GROUP
NOT_TELEGRAM NOT_VALID NO_ANSWER NO_ANSWER_IN_CHANNEL NO_BOT NO_CHAT NO_INVITE_LINK NO_MESSAGE NO_PRESS NO_QUERY
NO_RESPONSE NO_RIGHT_ANSWER NO_ROW OUTCOME_UNKNOWN PERSON_BLOCKED PERSON_UNKNOWN PLACES_FULL PLACE_NOT_HELD PLACE_TAKEN
PROGRAM_FAILED PROGRAM_MISSING PROGRAM_TIMEOUT PROMO_CHANGED PROMO_EXPIRED PROMO_NOT_FOUND PROMO_NOT_YET_VALID
PROMO_OF_OTHER_NAME PROMO_OF_OTHER_PERSON PROMO_TAKEN PUBLIC_URL_NOT_SET REPLIES_USED_UP REQUEST_NOT_FOUND
REQUEST_REFUSED RESULT_TOO_LARGE RUN_TOO_LONG SCENARIO_UNKNOWN SERVICE_FAILED SERVICE_THROTTLED SERVICE_TIMEOUT
SERVICE_UNREACHABLE SIGN_IN_NEEDED SOUND_INVALID SOUND_TOO_LONG SSML_UNSUPPORTED STATUS_REFUSED TELEGRAM_REFUSED
TOO_MANY_ITEMS TOO_MANY_PROMOS VALUE_INVALID VARIABLE_TAKEN VARIABLE_TOO_LARGE
"""
"""Of failures that only actions have. A test finds them in the source."""


@cache
def codes() -> Collection[str]:
    """Return all codes that `{code}` can be."""
    refusals = {code.removeprefix(_PROBLEM) for code in sentences() if code.startswith(_PROBLEM)}
    return sorted({*_OWN.split(), *refusals, *(one.name for one in Reason)})


def values_of_fields() -> Mapping[str, Collection[str]]:
    """Return what the fields of events and results can be that have one of few values."""
    return {
        "code": codes(),
        "job_refusal": codes(),
        "channel": tuple(channels()),
        "language": LOCALES,
        "directory_role": ROLES,
        "chat_type": ("private", "group", "supergroup", "channel"),
        "entity_type": ("user", "chat", "channel"),
        "member_status": ("creator", "administrator", "member", "restricted"),
        "answer_state": tuple(AnswerState),
        "answer_by": ("press", "number", "text", "mail", "link", "on_behalf"),
        "verdict": tuple(Verdict),
        "job_state": tuple(JobState),
    }


UNKNOWN = "UNKNOWN_VARIABLE"

_MOST_LISTED = 20
"""Values that a message lists; of more it names the most similar one."""
_COMPARING = ("equals", "not_equals", "in_list", "not_in_list")


def check_variables(step: CheckedStep, kind: ActionType, bot: Bot, problems: Problems) -> None:
    """Report names that variables.yaml does not have, and values that do not fit."""
    reader = Reader(step.action.place.file, problems)
    for name, value in named_by(step, kind):
        if name.text not in bot.declared:
            if split_name(name.text) is not None:  # otherwise the field's type is wrong, which is reported
                reader.error(name, UNKNOWN, unknown_variable(name.text, bot.declared))
        elif value is not None and _is_known(value):
            try:
                change_of(name.text, plain(value), bot.declared, None)
            except VariableFault as fault:
                reader.error(value, "WRONG_TYPE", placed(name.text, fault.said))


def check_reserved(step: CheckedStep, bot: Bot, problems: Problems) -> None:
    """Report a kind of places of which variables.yaml does not have both lists."""
    kind = step.node.get("kind")
    if step.action.type != "reserve" or not isinstance(kind, Scalar) or has_placeholder(kind):
        return
    for name in lists_of(kind.text):
        if name not in bot.declared or bot.declared[name].type != "list":
            Reader(step.action.place.file, problems).error(kind, UNKNOWN, sentence("no_list_variables_yaml", name=name))


def check_compared(step: CheckedStep, bot: Bot, problems: Problems) -> None:
    """Report conditions that compare a choice, a code or the like with what it never is, or the words of a failure,
    which depend on the language of the person. A code that is no slip of one may be that of another package.
    """
    reader = Reader(step.action.place.file, problems)
    for key in (one for one in fields_of_conditions(step) if one.text == "error"):
        reader.warning(key, "ERROR_COMPARED", sentence("error_compared"))
    conditions = [*conditions_of(step), *([step.node.get("rules")] if step.action.type == "validator" else [])]
    own = step.seen.own | given_names(bot)
    for key, rules in (pair for condition in conditions if condition for pair in rules_of(condition)):
        is_value = key.text not in own and key.text in values_of_fields()
        options = values_of_fields()[key.text] if is_value else options_of(key.text, bot.declared)
        for value in not_among(options, rules):
            report = reader.error if is_value and slip_of(value.text, tuple(options)) else reader.warning
            none = sentence("value_is_none_of", value=value.text, words=", ".join(options))
            said = sentence("is_no_code", value=value.text) if len(options) > _MOST_LISTED else none
            report(value, "NOT_AN_OPTION", placed(key.text, did_you_mean(said, value.text, options)))


def given_names(bot: Bot) -> Names:
    """Return the names that actions hand to scenarios with `with` or `as`."""
    actions = [action for scenario in bot.scenarios.values() for action in scenario.actions]
    given = [one for action in actions if isinstance(one := action.fields.get("with"), Mapping)]
    named = [str(action.fields["as"]) for action in actions if action.fields.get("as")]
    return frozenset((*named, *(str(name) for one in given for name in one)))


def options_of(name: str, declared: Declared) -> Sequence[str]:
    return declared[name].options if name in declared else ()


def not_among(options: Collection[str], rules: Node) -> Iterator[Scalar]:
    """Yield the values with which rules compare a field that has one of these options, and which it never has."""
    for rule in rules.items if isinstance(rules, ListNode) else (rules,):
        kind, wanted = (rule.get("rule"), rule.get("value")) if isinstance(rule, MapNode) else (None, None)
        if not options or not isinstance(kind, Scalar) or kind.text not in _COMPARING:
            continue
        for value in wanted.items if isinstance(wanted, ListNode) else (wanted,):
            if isinstance(value, Scalar) and value.text not in ("", *options) and not has_placeholder(value):
                yield value


def _is_known(value: Node) -> bool:
    """Return whether a value can be judged before the bot runs: any element fits a list."""
    if isinstance(value, MapNode) and value.get("append") is not None:
        times = value.get("times")
        return times is None or not list(texts_in(times))
    return not list(texts_in(value))


def named_by(step: CheckedStep, kind: ActionType) -> Iterator[tuple[Scalar, Node | None]]:
    """Yield the names of variables in the fields of an action, each with the value that it gets if one is written."""
    for field in kind.fields:
        node = step.node.get(field.name)
        if field.type is VARIABLES and isinstance(node, MapNode):
            is_path = field.name == "save"  # its values are places in a response
            yield from ((key, None if is_path else value) for key, value in node.pairs)
        elif field.type is VARIABLE and isinstance(node, Scalar) and not has_placeholder(node):
            yield node, None


def unknown_variable(name: str, declared: Declared) -> Text:
    """Return the complaint about a name that looks like a variable."""
    return did_you_mean(sentence("variables_yaml_has_no", name=name), name, declared)


def is_variable(path: str) -> bool:
    """Return whether a path looks like a variable: `person.age`."""
    names = names_in(path)
    return len(names) > 1 and names[0] in SCOPES


def full_name(path: str) -> str:
    """Return the name of the variable in which a path starts: `person.rooms` of `person.rooms.0`."""
    return ".".join(names_in(path)[:2])


def check_names(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> None:
    """Check the names in texts. `settings`: those of the bot. Nothing is reported where an action before may have
    returned any name.
    """
    reader, seen = Reader(step.action.place.file, problems), step.seen
    of_texts = reader_of(step, kind, settings, problems)
    if not seen.is_known:
        return
    for field, text in placed_texts(step, kind, settings):
        is_personal = field == "text" and _is_personal(step)
        for mention in mentions(str(text.value)):
            check_mention(of_texts, text, mention, seen, field, is_personal=is_personal)
    for key in fields_with_rules(step.node.get("rules")) if kind.name == "validator" else ():
        if not starts_in(key.text, known := seen.names()):
            report(reader, key, key.text, seen, known, ("UNKNOWN_RULE_FIELD", "rules"))
    for key in fields_of_conditions(step):
        if not starts_in(key.text, known := seen.names()):
            report(reader, key, key.text, seen, known, ("UNKNOWN_RULE_FIELD", "when"))


def _is_personal(step: CheckedStep) -> bool:
    """Return whether marks in the text of a message are filled for each recipient."""
    node = step.node.get("personal")
    return node is not None and plain(node) is True


def check_mention(
    reader: Reader, text: Scalar, mention: Mention, seen: VisibleNames, field: str, *, is_personal: bool
) -> None:
    if is_personal and mention.is_doubled:
        message = sentence("double_braces_personal", source=mention.source, path=mention.path)
        reader.warning(text, "DOUBLE_BRACES", message)
        return
    known = seen.names(field)
    if full_name(mention.path) in seen.stale_variables:
        message = sentence("without_chain_action_sees", source=mention.source)
        reader.warning(text, "STALE_VARIABLE", message)
    if is_perhaps(mention, seen, field):
        message = sentence("result_only_of_completed", source=mention.source, name=mention.source.strip("{}"))
        reader.warning(text, "RESULT_MAY_BE_MISSING", message)
    if mention.is_doubled and starts_in(mention.path, FIELDS):
        message = sentence("double_braces", source=mention.source, path=mention.path, single=f"{{{mention.path}}}")
        reader.warning(text, "DOUBLE_BRACES", message)
    elif not starts_in(mention.path, known):
        is_slip = slip_of(names_in(mention.path)[0], tuple(sorted(known)))
        if not mention.is_optional or is_slip or starts_in(mention.path, seen.unchained):
            report(reader, text, mention.path, seen, known, ("UNKNOWN_PLACEHOLDER", mention.source))


def is_perhaps(mention: Mention, seen: VisibleNames, field: str) -> bool:
    """Return whether a result may be missing, so that people would read the placeholder as it is written."""
    there = FIELDS.keys() | (seen.own - {field})
    return not mention.is_optional and starts_in(mention.path, seen.perhaps) and not starts_in(mention.path, there)


def report(reader: Reader, node: Scalar, path: str, seen: VisibleNames, known: Names, what: tuple[str, str]) -> None:
    """Report a path that starts in no known name. `what`: the code, and what has the name."""
    (code, source), name = what, names_in(path)[0]
    names = tuple(sorted(known))
    if is_variable(path):
        reader.error(node, UNKNOWN, placed(source, unknown_variable(full_name(path), seen.variables)))
        return
    if starts_in(path, seen.unchained):
        chain = "failed" if name in FAILURE else "completed"
        message = sentence("only_action_chain_sees", source=source, chain=chain)
        reader.error(node, code, message)
    elif slip_of(name, names):
        reader.error(node, code, did_you_mean(sentence("no_field", source=source, name=name), name, names))
    else:
        unknown = did_you_mean(sentence("neither_event_nor_action", source=source, name=name), name, names)
        reader.warning(node, code, unknown)


def fields_of_conditions(step: CheckedStep) -> list[Scalar]:
    return [key for one in conditions_of(step) for key in fields_of(one)]


def fields_with_rules(rules: Node | None) -> list[Scalar]:
    """Return the fields that rules are about; `is_member` is about the person instead."""
    return [key for key, listed in rules.pairs if not asks_for_member(listed)] if isinstance(rules, MapNode) else []


def asks_for_member(rules: Node) -> bool:
    listed = rules.items if isinstance(rules, ListNode) else (rules,)
    names = [rule.get("rule") for rule in listed if isinstance(rule, MapNode)]
    return any(isinstance(name, Scalar) and name.text == "is_member" for name in names)
