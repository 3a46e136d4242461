"""Finds entries of triggers that never fire: an earlier one of the same kind always does (C-06)."""

from collections.abc import Mapping
from itertools import islice

from scenarios.bot import SECTIONS, Bot, Target, Trigger
from scenarios.engine.triggers import ALWAYS, compared
from scenarios.loader.problem import Problems
from scenarios.words import Sentence, sentence

_INCLUDES = {
    "starts_with": ("begins_line_entry_never", str.startswith),
    "contains": ("contains_line_entry_never", str.__contains__),
}
"""Kind → how a longer text includes a shorter one: the code of the sentence, and a function. Any other kind compares
whole texts.
"""

_MOST_COMPARED = 1000
"""Entries of one kind that later ones are compared with, so that the check of a large file ends."""


def check_triggers(bot: Bot, problems: Problems) -> None:
    """Report the entries that never fire. Whether a pattern fires cannot be known."""
    for file, default in ((bot.triggers, "private"), (bot.group_triggers, "group")):
        for section, kinds in SECTIONS.items():
            for kind in kinds:
                if kind != "regex":
                    check_kind(section, kind, file.section(section).get(kind, ()), default, problems)


def check_kind(section: str, kind: str, triggers: tuple[Trigger, ...], default: str, problems: Problems) -> None:
    """Check the triggers of one kind. `default`: the chats that the file serves."""
    before: dict[str, list[Trigger]] = {}
    for trigger in triggers:
        text = compared(section, kind, trigger.key)
        if not text and kind not in (*ALWAYS, "exact"):
            message = sentence("has_nothing_compare_entry", key=trigger.key)
            problems.error(trigger.place, "EMPTY_TRIGGER", message)
        elif first := preceding(kind, before, text, trigger, default):
            problems.error(trigger.place, "TRIGGER_NEVER_FIRES", why_not(section, kind, text, trigger, first))
        else:
            before.setdefault(text, []).append(trigger)


def preceding(
    kind: str, before: Mapping[str, list[Trigger]], text: str, trigger: Trigger, default: str
) -> Trigger | None:
    """Return the earlier entry that fires whenever this one would."""
    texts = [text]
    if kind in _INCLUDES:
        texts = [shorter for shorter in islice(before, _MOST_COMPARED) if _INCLUDES[kind][1](text, shorter)]
    earlier = (one for found in texts for one in before.get(found, ()))
    wanted = trigger.targets
    return next((one for one in earlier if all(any(covers(a, b, default) for a in one.targets) for b in wanted)), None)


def covers(first: Target, second: Target, default: str) -> bool:
    """Return whether the first target takes every event that the second would take."""
    chats, wanted = (set((default,) if one.from_chat is None else one.from_chat) for one in (first, second))
    takes_people = bool(first.forward_enabled) >= bool(second.forward_enabled)
    takes_bots = bool(first.bot_enabled) >= bool(second.bot_enabled)
    return ("all" in chats or wanted <= chats) and takes_people and takes_bots


def why_not(section: str, kind: str, text: str, trigger: Trigger, first: Trigger) -> Sentence:
    """Return the message about an entry that never fires."""
    code = _INCLUDES[kind][0] if kind in _INCLUDES else ""
    if compared(section, kind, first.key) == text:
        code = "same_line_only_letters" if section == "callback" else "same_line_capitals_do"
    return sentence(code, key=trigger.key, other=first.key, line=first.place.line)
