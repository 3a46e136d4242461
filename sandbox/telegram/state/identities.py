"""The users of this Telegram. Every valid id exists: names, phones and access hashes are computed from it.

The phone +7999NNNNNNN belongs to the user id NNNNNNN (100001 has +79990100001). Any other phone belongs to the user
whose id is the number itself.
"""

import re
from hashlib import sha256
from zlib import crc32

MAX_ID = 0xFFFFFFFFFF  # core.telegram.org/api/bots/ids
_FIRST_PHONE = 79_990_000_000  # +7999 0000000: phones of the short ids
_SHORT_IDS = 10_000_000
_FIRST_NAMES = ("Анна", "Борис", "Вера", "Глеб", "Дарья", "Егор", "Жанна", "Илья", "Кира", "Лев", "Мария", "Олег")
_LAST_NAMES = ("Ким", "Шевчук", "Мельник", "Коваль", "Дюма", "Бойко", "Гончар", "Черных", "Седых", "Долгих", "Лысенко")


def exists(user: int) -> bool:
    return 0 < user <= MAX_ID


def phone_of(user: int) -> str:
    """Return the user's phone, digits only."""
    return str(_FIRST_PHONE + user if user < _SHORT_IDS else user)


def by_phone(phone: str) -> int | None:
    """Return the id of the user with this phone, None if it is not a valid phone."""
    digits = re.sub(r"[^0-9]", "", phone)
    if not 8 <= len(digits) <= 12:
        return None
    number = int(digits)
    user = number - _FIRST_PHONE if _FIRST_PHONE <= number < _FIRST_PHONE + _SHORT_IDS else number
    return user if exists(user) else None


def username_of(user: int) -> str:
    return f"user{user}"


def by_username(username: str) -> int | None:
    """Return the id of the user with this name, None if it is not a valid name. `user42` has 42."""
    if found := re.fullmatch(r"user([1-9][0-9]{0,11})", username):
        return int(found[1])
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{4,31}", username):
        return None
    return 0x100000000 + crc32(username.lower().encode())


def name_of(user: int) -> tuple[str, str]:
    return _FIRST_NAMES[user % len(_FIRST_NAMES)], _LAST_NAMES[user // 7 % len(_LAST_NAMES)]


def access_hash(account: int, peer: str) -> int:
    """Return the access hash of the peer ("42", "-100123") for this account; no other account may use it."""
    return int.from_bytes(sha256(f"{account} {peer}".encode()).digest()[:8], "little", signed=True)
