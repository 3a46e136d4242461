"""Data that outlives the process: the authorization keys and the accounts signed in with them.

`sessions.jsonl` gets one line per change; the last line of a key or account counts.
The file is rewritten at start. A kill at any moment loses no change that a client has seen.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any


@dataclass
class AuthKey:
    """One client's authorization key, and the account signed in with it."""

    secret: bytes  # 256 bytes
    account: int | None = None

    @cached_property
    def id(self) -> bytes:
        return sha1(self.secret).digest()[12:20]

    @cached_property
    def salt(self) -> int:
        """Return the server salt of this key. It is the only one and never expires."""
        return int.from_bytes(sha256(b"salt" + self.secret).digest()[:8], "little", signed=True)


@dataclass(slots=True)
class SavedAccount:
    """An account as stored on disk."""

    id: int
    bot: bool
    reserved: int = 0  # message ids up to here may be in use
    known: set[int] = field(default_factory=set)  # user ids: contacts, and users who wrote


class KeyStore:
    """The content of the server's directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "sessions.jsonl"
        self.keys: dict[bytes, AuthKey] = {}
        self.accounts: dict[int, SavedAccount] = {}
        for line in _lines(self._path):
            self._load(line)
        _replace(self._path, (json.dumps(line) + "\n" for line in self._dump()))

    def save_key(self, key: AuthKey) -> None:
        self.keys[key.id] = key
        self._append(_key_line(key))

    def forget_key(self, key: AuthKey) -> None:
        self.keys.pop(key.id, None)
        self._append({"key": key.secret.hex(), "gone": True})

    def save_account(self, account: SavedAccount) -> None:
        self.accounts[account.id] = account
        self._append(_account_line(account))

    def save_known_users(self, account: SavedAccount, users: Iterable[int]) -> None:
        """Store that the account knows these users. Only new ones are written."""
        if new := set(users) - account.known:
            account.known |= new
            self._append({"account": account.id, "knows": sorted(new)})

    def _load(self, line: dict[str, Any]) -> None:
        if "key" in line:
            key = AuthKey(bytes.fromhex(line["key"]), line.get("account"))
            self.keys[key.id] = key
            if line.get("gone"):
                del self.keys[key.id]
        elif "knows" in line:
            self.accounts[line["account"]].known.update(line["knows"])
        else:
            saved = self.accounts.setdefault(line["account"], SavedAccount(line["account"], line["bot"]))
            saved.reserved = line["reserved"]

    def _dump(self) -> Iterator[dict[str, Any]]:
        yield from map(_key_line, self.keys.values())
        for account in self.accounts.values():
            yield _account_line(account)
            yield {"account": account.id, "knows": sorted(account.known)}

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _key_line(key: AuthKey) -> dict[str, Any]:
    return {"key": key.secret.hex(), "account": key.account}


def _account_line(account: SavedAccount) -> dict[str, Any]:
    return {"account": account.id, "bot": account.bot, "reserved": account.reserved}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # a line cut off by a kill; its change was never answered


def _replace(path: Path, text: Iterable[str]) -> None:
    """Write a file atomically, readable only by its owner: an authorization key is full access."""
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text("".join(text))
    draft.replace(path)
