"""The people who use the bot. Every positive id exists; what was not set is computed as in `sandbox.telegram`."""

from dataclasses import dataclass
from typing import Any

from sandbox.telegram.state import identities


@dataclass(slots=True)
class Person:
    """One person. `has_blocked`: the person has blocked the bot."""

    id: int
    first_name: str
    last_name: str
    username: str
    language: str = "ru"
    has_blocked: bool = False

    @property
    def phone(self) -> str:
        """Return the person's phone in E.164."""
        return f"+{identities.phone_of(self.id)}"

    def user(self) -> dict[str, Any]:
        """Return the object User."""
        names = {"first_name": self.first_name, "last_name": self.last_name, "username": self.username}
        return {
            "id": self.id,
            "is_bot": False,
            **{name: value for name, value in names.items() if value},
            "language_code": self.language,
        }


class People:
    """All people, created when they are first used."""

    def __init__(self) -> None:
        self._all: dict[int, Person] = {}

    def get(self, user_id: int) -> Person:
        """Return the person. Raises LookupError for an id that no person can have."""
        if not identities.exists(user_id):
            raise LookupError(f"no person has the id {user_id}")
        if user_id not in self._all:
            first, last = identities.name_of(user_id)
            self._all[user_id] = Person(user_id, first, last, identities.username_of(user_id))
        return self._all[user_id]

    def set(self, user_id: int, *, name: str = "", username: str = "", language: str = "") -> Person:
        """Set what is given. Raises LookupError for an id that no person can have."""
        person = self.get(user_id)
        if name:
            person.first_name, _, person.last_name = name.partition(" ")
        person.username = username or person.username
        person.language = language or person.language
        return person
