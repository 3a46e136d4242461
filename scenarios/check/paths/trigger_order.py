"""Finds entries of triggers that never fire: an earlier one of the same kind always does (C-06)."""

from collections.abc import Mapping
from itertools import islice

from scenarios.bot import SECTIONS, Bot, Target, Trigger
from scenarios.engine.triggers import ALWAYS, compared
from scenarios.loader.problem import Problems

_INCLUDES = {
    "starts_with": ("begins with", str.startswith),
    "contains": ("contains", str.__contains__),
}
"""Kind → how a longer text includes a shorter one, in words and as a function. Any other kind compares whole texts."""

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
            message = f"{trigger.key!r} has nothing to compare with, so this entry is skipped; write a word"
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


def why_not(section: str, kind: str, text: str, trigger: Trigger, first: Trigger) -> str:
    """Return the message about an entry that never fires."""
    other = f"{first.key!r} in line {first.place.line}"
    if compared(section, kind, first.key) == text:
        counts = "only letters and digits count" if section == "callback" else "capitals do not count"
        return f"{trigger.key!r} is the same as {other}, for {counts}; write one entry for both"
    return f"{trigger.key!r} {_INCLUDES[kind][0]} {other}, so this entry never fires; write it before that one"
