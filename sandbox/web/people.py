"""The people of the inbox page: each is a name with one address per channel."""

from collections.abc import Mapping
from dataclasses import dataclass

MAX_PEOPLE = 1000
_FIRST_PEOPLE = {"teacher": "Преподаватель (teacher)", "student": "Студент (student)"}
ADDRESSES: Mapping[str, str] = {
    "telegram": "telegram",
    "telegram-bot": "telegram",
    "vk": "vk",
    "max": "max",
    "sms": "sms",
    "email": "email",
}
"""The field of a person's address, by channel. The account and the bot see the same Telegram id."""


@dataclass(frozen=True, slots=True)
class Person:
    """One person. An address is empty if the person has none."""

    number: int
    name: str
    telegram: str = ""
    vk: str = ""
    max: str = ""
    sms: str = ""
    email: str = ""

    def addresses(self) -> dict[str, str]:
        """Return the person's address in each channel that can reach the person."""
        return {channel: address for channel, field in ADDRESSES.items() if (address := getattr(self, field))}


class AddressTaken(Exception):
    """Another person has this address."""


class TooManyPeople(Exception):
    """There are MAX_PEOPLE people already."""


class People:
    """All people, a teacher and a student to begin with. An address belongs to one person."""

    def __init__(self) -> None:
        self._all: dict[int, Person] = {}
        self._last = 0
        for number, (role, name) in enumerate(_FIRST_PEOPLE.items(), 1):
            phone, mail = f"+7999010000{number}", f"{role}@sandbox.example"
            self.create(
                name,
                telegram=str(100_000 + number),
                vk=str(200_000 + number),
                max=str(300_000 + number),
                sms=phone,
                email=mail,
            )

    def create(self, name: str, **addresses: str) -> Person:
        """Create a person and return it. Raises AddressTaken, TooManyPeople."""
        person = Person(self._last + 1, name, **addresses)
        if len(self._all) >= MAX_PEOPLE:
            raise TooManyPeople(f"there are {MAX_PEOPLE} people")
        for channel, address in person.addresses().items():
            if (other := self.owner(channel, address)) is not None:
                raise AddressTaken(f"{address} belongs to {other.name}")
        self._last = person.number
        self._all[person.number] = person
        return person

    def owner(self, channel: str, address: str) -> Person | None:
        """Return the person with this address, None if there is none."""
        return next((person for person in self._all.values() if person.addresses().get(channel) == address), None)

    def get(self, number: int) -> Person:
        """Return the person. Raises LookupError."""
        if number not in self._all:
            raise LookupError(f"there is no person {number}")
        return self._all[number]

    def delete(self, number: int) -> None:
        """Delete the person; the messages stay. Raises LookupError."""
        self.get(number)
        del self._all[number]

    def list(self) -> list[Person]:
        """Return all people in the order of their numbers."""
        return list(self._all.values())
