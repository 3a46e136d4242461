"""AES-256 in IGE mode, the cipher of MTProto ("Defining AES Key and Initialization Vector", mtproto/description).

Telethon's own wrapper copies every byte through a Python tuple, so the server calls the same library directly and is
then no longer the slowest part of a send. Without a system libssl it is Telethon's wrapper (cryptg or pure Python).
"""

import ctypes
from collections.abc import Callable
from typing import Any

from telethon.crypto import AES
from telethon.crypto import aes as telethon_aes
from telethon.crypto import libssl as telethon_libssl

Cipher = Callable[[bytes, bytes, bytes], bytes]


class _Schedule(ctypes.Structure):
    """OpenSSL's AES_KEY (openssl/aes.h): the round keys of one key."""

    _fields_ = (("rounds_keys", ctypes.c_uint32 * 60), ("rounds", ctypes.c_uint))


def _run(library: Any, expand: Any, direction: int) -> Cipher:
    def cipher(data: bytes, key: bytes, iv: bytes) -> bytes:
        schedule, out = _Schedule(), ctypes.create_string_buffer(len(data))
        expand(key, 256, ctypes.byref(schedule))
        # The library writes the next block's vector back, hence a private copy of it.
        state = ctypes.create_string_buffer(iv, 32)
        library.AES_ige_encrypt(data, out, ctypes.c_size_t(len(data)), ctypes.byref(schedule), state, direction)
        return out.raw

    return cipher


def _ciphers() -> tuple[Cipher, Cipher]:
    # Telethon's handle, not one of our own: on macOS loading the wrong libcrypto ends the process.
    library = getattr(telethon_libssl, "_libssl", None)
    if telethon_aes.cryptg or not library:
        return AES.encrypt_ige, AES.decrypt_ige
    return _run(library, library.AES_set_encrypt_key, 1), _run(library, library.AES_set_decrypt_key, 0)


encrypt, decrypt = _ciphers()
