"""How headers are written. Pure.

The library's own policy encodes long words of ASCII headers, such as URLs, which mail programs do not read then, and
loses or doubles spaces of encoded subjects (Python 3.11). So a header is written in one line if it can be, as
RFC 5322, 2.1.1 allows up to 998 characters, and otherwise by `email.header`.
"""

from email.header import Header
from email.policy import EmailPolicy
from typing import Any

_LONGEST_LINE = 998


class HeaderPolicy(EmailPolicy):
    """Writes headers of one line as they are, and encodes the others word by word (RFC 2047)."""

    def header_store_parse(self, name: str, value: Any) -> tuple[str, Any]:
        """Keep a text as it is: the library decodes what looks like an encoded word."""
        return (name, value) if isinstance(value, str) else super().header_store_parse(name, value)

    def fold_binary(self, name: str, value: Any) -> bytes:
        line = f"{name}: {value}"
        if _fits(line) and (self.utf8 or line.isascii()):
            return line.encode() + b"\r\n"
        if hasattr(value, "addresses"):
            value = ", ".join(f"{_encoded(name, one.display_name)} <{one.addr_spec}>" for one in value.addresses)
        else:
            value = _encoded(name, str(value))
        return f"{name}: {value}\r\n".encode()


def _encoded(name: str, text: str) -> str:
    """Return the encoded words of a text, in lines of the usual length."""
    return Header(text, "utf-8", header_name=name).encode(linesep="\r\n")


def _fits(line: str) -> bool:
    """Return whether it is short enough, and has nothing that looks like an encoded word."""
    return len(line.encode()) <= _LONGEST_LINE and "=?" not in line


ASCII_HEADERS = HeaderPolicy(linesep="\r\n")
UTF8_HEADERS = HeaderPolicy(linesep="\r\n", utf8=True)
