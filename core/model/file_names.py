"""Names of files as headers, forms and folders may have them. Pure."""

LONGEST = 60
"""Characters; at most 240 bytes, fewer than a file system allows."""


def safe_name(name: str) -> str:
    """Return the name without what may not stand in a header, a form or a path; its end if it is long; "file" if
    nothing is left.
    """
    kept = [character for character in name if character.isprintable() and character not in '"\\/']
    return "".join(kept[-LONGEST:]).lstrip(". ") or "file"
