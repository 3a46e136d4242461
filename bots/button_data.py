"""The data of buttons: short, and signed, so that only what the bot has shown to this person is accepted.

<content>.<keyed hash of tenant, channel, address and content>       at most 64 bytes, the limit of Telegram
"""

import hmac
import secrets
from base64 import urlsafe_b64encode

from bots.dialog_event import DialogEvent
from core.redis.keys import KEYS
from core.redis.store import Store

_HASH_BYTES = 9  # 72 bits, 12 characters
MAX_CONTENT = 51


class ButtonData:
    """Signs and checks with the secret of the installation, so that every process accepts what another has shown."""

    def __init__(self, secret: bytes, tenant: str) -> None:
        self._secret = secret
        self._tenant = tenant

    @classmethod
    async def open(cls, store: Store, tenant: str) -> "ButtonData":
        """Read the secret; make it at the first use."""
        name = KEYS["secret"].at(0, "buttons")
        await store.command("SET", name, secrets.token_hex(32), "NX")
        return cls((await store.command("GET", name)).encode(), tenant)

    def sign(self, channel: str, address: str, content: str) -> str:
        """Return the data of a button for one person."""
        return f"{content}.{self._hash(channel, address, content)}"

    def read(self, event: DialogEvent) -> str | None:
        """Return the content of the pressed button; None if it was not signed for this person."""
        content, _, given = event.button.rpartition(".")
        wanted = self._hash(event.channel, event.address, content)
        return content if hmac.compare_digest(given.encode(), wanted.encode()) else None

    def _hash(self, channel: str, address: str, content: str) -> str:
        signed = "\n".join((self._tenant, channel, address, content)).encode(errors="surrogatepass")
        return urlsafe_b64encode(hmac.digest(self._secret, signed, "sha256")[:_HASH_BYTES]).decode()
