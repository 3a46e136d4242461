"""Placeholders: `{username|fallback:Гость}` in the texts that bot authors write. Pure: no Redis, no YAML, no Telegram.

Guarantees: nothing raises; what cannot be done is left as written or as it was, and reported as a `RenderWarning`
(C-56). A text without braces costs one search for a brace and is returned as the same object (C-55). Each text is
parsed once. What a person has written is escaped for the parse mode and never parsed for placeholders.

`render` takes one text, `render_all` everything in an action's attributes; `problems` finds mistakes before a bot runs.
Guide and reference: docs/scenarios-placeholders.md. Neighbours: `scenarios.bot.patterns` below; the engine above.
"""

from scenarios.placeholders.modifiers import MODIFIERS, Modifier
from scenarios.placeholders.parser import problems
from scenarios.placeholders.rendering import (
    HTML,
    MARKDOWN_V2,
    MAX_DEPTH,
    PLAIN,
    URL,
    Escaping,
    Rendered,
    RenderWarning,
    Scope,
    render,
    render_all,
)
from scenarios.placeholders.template import TemplateProblem

__all__ = [
    "HTML",
    "MARKDOWN_V2",
    "MAX_DEPTH",
    "MODIFIERS",
    "PLAIN",
    "URL",
    "Escaping",
    "Modifier",
    "RenderWarning",
    "Rendered",
    "Scope",
    "TemplateProblem",
    "problems",
    "render",
    "render_all",
]
