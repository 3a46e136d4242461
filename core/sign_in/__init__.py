"""Signing users in to outside services: OAuth 2, authorization code with PKCE (RFC 6749, RFC 7636).

    SignIn.begin ─▶ the user's browser ─▶ the service ─▶ GET /v1/sign-in/callback ─▶ SignIn.finish ─▶ Tokens (encrypted)
                                                        Tokens.access_token ◀── jobs, with one refresh at a time

Guarantees: a callback is accepted once, for the sign-in that it belongs to, within ten minutes; tokens are encrypted at
rest; one process at a time refreshes a user's tokens, so that a refresh token is used once.

Neighbours: `core.redis` below. `delivery/` and `jobs/` use it; `cli` opens it from the settings.
"""

from core.sign_in.services import Service
from core.sign_in.sign_in import SignedIn, SignIn
from core.sign_in.tokens import SignInExpired, Tokens
from core.sign_in.vault import Vault

__all__ = ["Service", "SignIn", "SignInExpired", "SignedIn", "Tokens", "Vault"]
