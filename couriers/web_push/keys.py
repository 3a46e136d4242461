"""The key pair by which push services recognise this installation (VAPID, RFC 8292).

Browsers subscribe with its public half, and nobody can send to them without the private one. So the pair is made once
and kept: with another one everybody has to switch notifications on again.
"""

import os
import secrets
from base64 import urlsafe_b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from couriers.sending import SetupError

FILE = "key"
_BYTES = 32


def load_key(written: str, directory: Path) -> Vapid02:
    """Return the pair whose private half is `written`, in base64url; without it that of the file in `directory`, which
    is made if it is missing. Raises SetupError.
    """
    try:
        if written:
            return Vapid02.from_string(written.strip())
        return Vapid02.from_string(_kept(directory / FILE))
    except OSError as fault:
        raise SetupError(f"{directory / FILE} cannot be used ({fault.strerror}): set ADA_WEB_PUSH_KEY") from None
    except ValueError:
        place = "ADA_WEB_PUSH_KEY" if written else str(directory / FILE)
        raise SetupError(f"{place} is no private key of P-256 in base64url") from None


def public_key(key: Vapid02) -> str:
    """Return the public half as browsers take it: the uncompressed point in base64url."""
    return _base64url(key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def _kept(file: Path) -> str:
    """Return the private key of a file. Of processes that make it at the same time, one wins."""
    if not file.exists():
        number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
        draft = file.with_name(f"{FILE}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600, exist_ok=False)
        with draft.open("w", encoding="ascii") as written:
            written.write(_base64url(number.to_bytes(_BYTES, "big")))
            written.flush()
            os.fsync(written.fileno())
        try:
            file.hardlink_to(draft)
        except FileExistsError:
            pass  # another process was faster: its key is read
        finally:
            draft.unlink()
    return file.read_text(encoding="ascii").strip()


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
