"""Commands, and which of them a role has (D-30). Pure."""

from core.model.people import User

TEACHERS = ("trainer", "staff", "admin")
"""The roles that may write to groups."""


def command_of(text: str) -> str:
    """Return the command that a text begins with, without its slash and the bot's name; "" if it is none."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return first[1:].partition("@")[0].lower() if first.startswith("/") else ""


def is_teacher(user: User | None) -> bool:
    """Return whether the person may write to groups."""
    return user is not None and user.role in TEACHERS


def help_of(user: User | None) -> str:
    """Return the name of the help text for a person; `user` None: not linked."""
    if user is None:
        return "help_guest"
    if user.role == "admin":
        return "help_admin"
    return "help_teacher" if is_teacher(user) else "help_student"
