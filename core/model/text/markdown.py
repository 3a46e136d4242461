"""Reads Markdown as language models write it: the text as it is shown, and its entities. Pure.

What is not recognised stays as it is written. `core.model.text.text_entities` writes the result for a parse mode.

Source: spec.commonmark.org, the part of it that Telegram can show.
"""

import re
from typing import Any

_INSIDE = r"(?!\s)(?:[^\n]{0,1000}?)(?<!\s)"
_MARKS = re.compile(
    r"^```(?P<language>[\w+#-]*)[ \t]*\n(?P<pre>.*?)\n?^```[ \t]*$"
    r"|(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)"
    r"|\[(?P<text_link>[^\]\n]+)\]\((?P<url>[a-z]+:[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)"
    rf"|\*\*\*(?P<both>{_INSIDE})\*\*\*"
    rf"|(?P<double>\*\*|__)(?P<bold>{_INSIDE})(?P=double)"
    rf"|~~(?P<strikethrough>{_INSIDE})~~"
    rf"|(?<![\w*_])(?P<single>[*_])(?P<italic>{_INSIDE})(?P=single)(?![\w*_])"
    r"|^\#{1,6}[ \t]+(?P<heading>[^\n]+?)[ \t]*\#*$"
    r"|^(?P<indent>[ \t]*)[-*+](?=[ \t])"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])",
    re.MULTILINE | re.DOTALL,
)
_KINDS = {"both": ("bold", "italic"), "heading": ("bold",), "bold": ("bold",), "italic": ("italic",)}
_NESTED = ("both", "bold", "italic", "strikethrough", "heading", "text_link")
_DEEPEST = 10

Entity = dict[str, Any]


def read_markdown(text: str) -> tuple[str, list[Entity]]:
    """Return the text without marks, and its entities as the Bot API has them."""
    reader = _MarkdownReader()
    reader.read(text)
    return "".join(reader.parts), reader.entities


class _MarkdownReader:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.entities: list[Entity] = []
        self._length = 0

    def read(self, text: str, depth: int = 0) -> None:
        at = 0
        for found in _MARKS.finditer(text) if depth < _DEEPEST else ():
            self._show(text[at : found.start()])
            self._read_mark(found, depth)
            at = found.end()
        self._show(text[at:])

    def _show(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text.encode("utf-16-le", "surrogatepass")) // 2

    def _read_mark(self, found: re.Match[str], depth: int) -> None:
        if found["indent"] is not None:
            self._show(f"{found['indent']}•")
        elif found["escaped"]:
            self._show(found["escaped"])
        else:
            name = next(one for one in (*_NESTED, "code", "pre") if found[one] is not None)
            self._read_range(name, found, depth)

    def _read_range(self, name: str, found: re.Match[str], depth: int) -> None:
        start = self._length
        if name in _NESTED:
            self.read(found[name], depth + 1)
        else:
            self._show(found[name])
        more = {"url": found["url"]} if name == "text_link" else {}
        more |= {"language": found["language"]} if found["language"] else {}
        for kind in _KINDS.get(name, (name,)):
            self.entities.append({"type": kind, "offset": start, "length": self._length - start, **more})
