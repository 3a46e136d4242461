"""The people of this Telegram. Everybody exists: names, phones and access hashes are worked out from the user id.

Phone and id belong together: +7999NNNNNNN is the person NNNNNNN (100001 has +79990100001), every other number is a
person whose id is the number itself.
"""

import re
from hashlib import sha256
from zlib import crc32

LARGEST_ID = 0xFFFFFFFFFF  # core.telegram.org/api/bots/ids
_HOME = 79_990_000_000  # +7999 0000000: the numbers of the people with short ids
_SHORT = 10_000_000
_FIRST_NAMES = ("Анна", "Борис", "Вера", "Глеб", "Дарья", "Егор", "Жанна", "Илья", "Кира", "Лев", "Мария", "Олег")
_LAST_NAMES = ("Ким", "Шевчук", "Мельник", "Коваль", "Дюма", "Бойко", "Гончар", "Черных", "Седых", "Долгих", "Лысенко")


def exists(user: int) -> bool:
    return 0 < user <= LARGEST_ID


def phone_of(user: int) -> str:
    """Return the person's number, digits only."""
    return str(_HOME + user if user < _SHORT else user)


def by_phone(phone: str) -> int | None:
    """Return who has this number, None if it cannot be one."""
    digits = re.sub(r"[^0-9]", "", phone)
    if not 8 <= len(digits) <= 12:
        return None
    number = int(digits)
    user = number - _HOME if _HOME <= number < _HOME + _SHORT else number
    return user if exists(user) else None


def username_of(user: int) -> str:
    return f"user{user}"


def by_username(username: str) -> int | None:
    """Return who has this username, None if it cannot be one: `user42` is 42, others are worked out."""
    if found := re.fullmatch(r"user([1-9][0-9]{0,11})", username):
        return int(found[1])
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{4,31}", username):
        return None
    return 0x100000000 + crc32(username.lower().encode())


def name_of(user: int) -> tuple[str, str]:
    return _FIRST_NAMES[user % len(_FIRST_NAMES)], _LAST_NAMES[user // 7 % len(_LAST_NAMES)]


def access_hash(account: int, peer: str) -> int:
    """Return the number by which this account, and no other, may address the peer ("42", "-100123")."""
    return int.from_bytes(sha256(f"{account} {peer}".encode()).digest()[:8], "little", signed=True)
