"""A bot as its author wrote it, and the small parts of its language."""

from scenarios.bot.data import Place
from scenarios.bot.model import (
    ANY,
    NAMED,
    OF_GROUPS,
    OPTIONAL,
    OUTCOMES,
    SECTIONS,
    Action,
    Bot,
    BotCommand,
    Role,
    Scenario,
    Target,
    Trigger,
    Triggers,
    no_triggers,
)

__all__ = [
    "ANY",
    "NAMED",
    "OF_GROUPS",
    "OPTIONAL",
    "OUTCOMES",
    "SECTIONS",
    "Action",
    "Bot",
    "BotCommand",
    "Place",
    "Role",
    "Scenario",
    "Target",
    "Trigger",
    "Triggers",
    "no_triggers",
]
