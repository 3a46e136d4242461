"""The RSA key of every sandbox. It protects nothing: it stands in the source.

Made at each first start, it would take a second of processor time.
"""

from hashlib import sha1
from typing import Any

import rsa
from telethon.crypto.rsa import get_byte_array
from telethon.tl import TLObject

_EXPONENT = 65537
_P = int(
    "E4D94063102334BF5E8E5E827CBCE68DC89127C7C3438BB5B69C7915BE23B92B475332552D28CFA4B5F2790C828240D7"
    "624B279FB4A24BF1032C12D0CA13DFD4477D70828654C504A6CE17A3D8E74B3E8E9B483767517FD5DC34F818C9B88817"
    "C22F39ED37CA9430B1139615046C48AEF6ACE623AD88E683C3516799DD453B03",
    16,
)
_Q = int(
    "CB38D860C6E3F0876FB1C63844DA0AB71CD21A1F93D4C5858DEFA92FD544844EAADD2DDFA4176E88E7979A9E2BC33117"
    "3F2E2EB7DEFF82B5BCFA6FCB926053066F21BA2E7431BB7D25348C6B59E72DFCABBAAEBF83DEE2FBA501CD3A53E8793E"
    "725641625D37CE03C081FC641C5CF332E147F714FC2EB923CEBD220E643BAF8D",
    16,
)

SERVER_KEY: Any = rsa.PrivateKey(_P * _Q, _EXPONENT, pow(_EXPONENT, -1, (_P - 1) * (_Q - 1)), _P, _Q)


def public_key_pem() -> str:
    """Return the public key, as clients of Telegram read it (PKCS#1)."""
    public: bytes = rsa.PublicKey(SERVER_KEY.n, SERVER_KEY.e).save_pkcs1()
    return public.decode()


def fingerprint() -> int:
    """Return the lower 64 bits of SHA-1 over the key as TL bytes (mtproto/auth_key)."""
    parts = (TLObject.serialize_bytes(get_byte_array(part)) for part in (SERVER_KEY.n, SERVER_KEY.e))
    return int.from_bytes(sha1(b"".join(parts)).digest()[-8:], "little", signed=True)
