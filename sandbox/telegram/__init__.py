"""Simulates Telegram's MTProto server well enough that an unmodified Telethon signs in and sends.

    server = TelegramServer(SandboxState(), Path("data/telegram"))
    await server.start()
    trust_server_key(server.public_key_pem)               # telethon.crypto.rsa.add_key(pem, old=False)
    session = StringSession()
    set_server(session, server.host, server.port)         # session.set_dc(2, host, port)
    client = TelegramClient(session, 1, "any hash")
    await client.start(bot_token="4242:any-token-will-do")   # or phone="+79990000042", code_callback=lambda: "22222"

A packet passes `connection` → `protocol` (`framing`, `encryption`, `messages`) → `methods` (`dispatch`, then the module
of the method) → `methods.replies` → back. `protocol.handshake` creates the authorization keys, `protocol.key_store`
keeps them; all connections share `state`. Every user id exists: see `state.identities`.
"""

from sandbox.telegram.server import TelegramServer, set_server, trust_server_key

__all__ = ["TelegramServer", "set_server", "trust_server_key"]
