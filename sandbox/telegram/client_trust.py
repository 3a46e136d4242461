"""Makes an unmodified Telethon use another server than Telegram's, through Telethon's public API."""

from telethon.crypto import rsa
from telethon.sessions.abstract import Session

from sandbox.telegram.methods.config import DC


def trust_server_key(public_key_pem: str) -> None:
    """Make this process's Telethon accept the server's RSA key, beside Telegram's own. Safe to repeat."""
    rsa.add_key(public_key_pem.encode(), old=False)


def set_server(session: Session, host: str, port: int) -> None:
    """Point a session to the server. An authorization key for another server is dropped."""
    session.set_dc(DC, host, port)
