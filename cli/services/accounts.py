"""The accounts that were set at the console, as processes read and change them (`core.deliveries.channels`).

Each setting of the environment, of .env or of settings.yaml is used in place of a stored one.
"""

from collections.abc import Mapping
from socket import gethostname

from cli.processes.noted_process import is_running
from cli.services.sign_in import known_keys, open_vault
from cli.services.store import open_when_reachable
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, Settings
from cli.settings.sources import RawSetting
from core.deliveries.channels import StoredAccount, StoredAccounts
from core.errors import SetupError
from core.model.durability import Durability
from core.processes import ProcessRecord, ProcessRegister
from core.redis.store import Store
from couriers.channel import channels
from providers.sign_in import Vault
from providers.sign_in.stored import Undecryptable

SOURCE = "the console"
"""The source of a stored setting, as the sources of settings are named."""


class ConsoleAccounts:
    """The stored settings that one process may receive. `process`: as `cli.settings.secrets` names it. Methods raise
    StoreError.
    """

    def __init__(self, store: Store, process: str) -> None:
        self._accounts = StoredAccounts(store)
        self._may_receive = receiver(process)
        self._read: Mapping[str, str] = {}

    async def added_to(self, configuration: Configuration) -> Configuration:
        """Return the settings with the stored ones. Raises SetupError if their key is not here."""
        self._read = await self._stored()
        encrypted = {name: text for name, text in self._read.items() if name not in configuration.raw}
        if not encrypted:
            return configuration
        return configuration.with_raw({**configuration.raw, **_decrypted(encrypted, configuration.settings)})

    async def have_changed(self) -> bool:
        """Return whether they are others than those that were read."""
        return await self._stored() != self._read

    async def _stored(self) -> Mapping[str, str]:
        stored = (await self._accounts.all()).values()
        return {name: text for one in stored for name, text in one.settings.items() if self._may_receive(name)}


def _decrypted(encrypted: Mapping[str, str], settings: Settings) -> Mapping[str, RawSetting]:
    keys = known_keys(settings)
    try:
        if not keys:
            raise Undecryptable
        vault = Vault(keys)
        return {name: RawSetting(name, vault.decrypt(text), SOURCE) for name, text in encrypted.items()}
    except Undecryptable:
        raise SetupError(
            f"{' and '.join(sorted(encrypted))} was set at the console and encrypted with a key that is not here: set"
            " ADA_SECRET_KEY to it, or set the account again at the console"
        ) from None


async def names_of_accounts(url: str, shards: int, durability: Durability) -> tuple[Mapping[str, RawSetting], str]:
    """Return the names of the stored settings, by which `./ada up` knows what to start; their texts are for others. And
    a courier that works on this server already, for people; "" if none does. Waits for the server.
    """
    store = await open_when_reachable(url, shards, durability=durability)
    try:
        stored = (await StoredAccounts(store).all()).values()
        working = [one for one in await ProcessRegister(store).list(store.now_ms()) if is_courier_at_work(one)]
    finally:
        await store.close()
    names = {name: RawSetting(name, "", SOURCE) for one in stored for name in one.settings}
    return names, next((f"{one.name} of {one.host}, process {one.pid}" for one in working), "")


def is_courier_at_work(process: ProcessRecord) -> bool:
    """Return whether a courier is there, and was not killed on this machine a moment ago."""
    return process.kind == "courier" and process.is_there and (process.host != gethostname() or is_running(process))


def sources_of(channel: str, raw: Mapping[str, RawSetting]) -> Mapping[str, str]:
    """Return where each setting of the account of a channel comes from."""
    return {name: raw[name].source for name in channels()[channel].settings_of_account if name in raw}


class AccountWriter:
    """Encrypts and stores settings of accounts, for the API."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def change(self, channel: str, version: int, settings: Mapping[str, str], by: str) -> int:
        """Replace settings of a channel, the others stay; an empty text removes one. Returns the new version. Raises
        Conflict ACCOUNT_CHANGED if `version` is not the last one, SetupError, StoreError.
        """
        accounts = StoredAccounts(self._store)
        stored = (await accounts.all()).get(channel)
        given = {name: text for name, text in settings.items() if text}
        vault = await open_vault(self._store, self._settings) if given else None
        encrypted = {name: vault.encrypt(text) for name, text in given.items()} if vault else {}
        kept = {name: text for name, text in (stored.settings if stored else {}).items() if name not in settings}
        now = self._store.now_ms()
        account = StoredAccount({**kept, **encrypted}, by, now) if kept or encrypted else None
        return await accounts.change(channel, version, account)
