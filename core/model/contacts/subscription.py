"""A subscription: where a browser receives notifications, and the keys with which they are encrypted (RFC 8030, 8291).

Its endpoint lets its owner be reached, so it is in no list, history, export or log: the address of the contact is a
digest of the subscription.
"""

import re
from base64 import urlsafe_b64encode
from hashlib import blake2b
from urllib.parse import urlsplit

from msgspec import Struct

_LONGEST_ENDPOINT = 1024
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LOOPBACK = ("127.0.0.1", "localhost")
_DIGEST_BYTES = 16


class Subscription(Struct, frozen=True):
    """`p256dh`, `auth`: the public key and the secret of the browser, in base64url. `device`: as its owner recognises
    it, such as Firefox, Android. `at`: since when, Unix ms.
    """

    endpoint: str
    p256dh: str
    auth: str
    device: str = ""
    at: int = 0

    @property
    def address(self) -> str:
        """Return the address of the contact. Whoever knows it knows nothing of the subscription."""
        text = f"{self.endpoint}\n{self.p256dh}\n{self.auth}"
        digest = blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
        return urlsafe_b64encode(digest).decode().rstrip("=")

    @property
    def origin(self) -> str:
        """Return scheme, host and port of the endpoint."""
        return origin_of(self.endpoint)


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL; "" for what is none."""
    try:
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc}".lower() if split.scheme and split.hostname else ""
    except ValueError:
        return ""


def is_endpoint(endpoint: str, push_service: str = "") -> bool:
    """Return whether it is a URL of https, without a name and password, and of the `push_service` if there is only one.
    That one may be simulated on this machine, without a certificate.
    """
    try:
        split = urlsplit(endpoint)
        host, _ = split.hostname or "", split.port
    except ValueError:
        return False
    is_simulated = bool(push_service) and split.scheme == "http" and host in _LOOPBACK
    is_plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint and "@" not in split.netloc
    is_used = not push_service or origin_of(endpoint) == origin_of(push_service)
    is_host = bool(_HOST.fullmatch(host)) and len(endpoint) <= _LONGEST_ENDPOINT
    return (split.scheme == "https" or is_simulated) and is_plain and is_used and is_host
