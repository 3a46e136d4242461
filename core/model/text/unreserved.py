"""Any text in the unreserved characters of a URL (RFC 3986, section 2.3), for cursors: `~` stands for `%`."""

from urllib.parse import quote, unquote

ONE = "([A-Za-z0-9_.-]|~[0-9A-F]{2})"
"""One character, as a pattern."""


def to_unreserved(text: str) -> str:
    """Return the text as a client may write it into a URL unchanged."""
    return quote(text, safe="").replace("~", "%7E").replace("%", "~")


def from_unreserved(written: str) -> str:
    """Return the text of which `to_unreserved` has made this."""
    return unquote(written.replace("~", "%"))
