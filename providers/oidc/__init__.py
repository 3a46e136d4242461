"""Sign-in to the console with an account of an identity provider (OpenID Connect Core 1.0).

    OidcSignIn.begin ─▶ the provider ─▶ OidcSignIn.finish ─▶ an `OutsideAccount` ─▶ core.sessions.outside_accounts
    the provider ends a session ─▶ OidcSignIn.read_logout ─▶ an `EndedLogin` ─┘

Guarantees: code flow with PKCE, state and nonce; a callback is accepted once, within ten minutes, in the browser and
for the provider that it was begun with; an ID token only with a signature of the provider's present keys, for this
client, this nonce and this time. No token is stored.

Neighbours: `core.sessions` decides which person has the account. `cli` opens it from the settings; only with them the
library joserfc is imported.
"""
