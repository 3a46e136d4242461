"""Admission of requests: API keys with tenants and scopes, and stored responses for repeated requests.

Guarantees: a revoked key is refused everywhere within a second. A repeated write with an Idempotency-Key gets the first
response and changes nothing.

Neighbours: `core.redis` below; `delivery/` checks each request here, `cli` creates and revokes keys.
"""
