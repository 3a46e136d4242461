"""Signing users in to outside services: OAuth 2, authorization code with PKCE (RFC 6749, RFC 7636).

    SignIn.begin ─▶ our page, which names the person ─▶ SignIn.confirm ─▶ the service
                                     GET /v1/sign-in/callback ─▶ SignIn.finish ─▶ Tokens (encrypted)
                                                                                     ▲
                                               jobs, with one refresh at a time ─────┘

Guarantees: no account is connected before a page has named the person it is connected with, and the same browser
has confirmed it; a callback is accepted once, in the browser that began the sign-in, within ten minutes; tokens are
encrypted at rest; one process at a time refreshes a user's tokens, so that a refresh token is used once.

Neighbours: `core.redis` below. `delivery/` and `jobs/` use it; `cli` opens it from the settings.
"""

from providers.sign_in.services import Service
from providers.sign_in.sign_in import Invitation, SignedIn, SignIn
from providers.sign_in.stored import Vault
from providers.sign_in.tokens import KeyLost, SignInExpired, Tokens

__all__ = ["Invitation", "KeyLost", "Service", "SignIn", "SignInExpired", "SignedIn", "Tokens", "Vault"]
