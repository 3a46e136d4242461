"""Admission of requests: API keys with tenants and scopes, stored responses for repeated requests, quotas, quiet hours.

Guarantees: a revoked key is refused everywhere within a second. A repeated write with an Idempotency-Key gets the first
response and changes nothing. A time that quiet hours have moved is never in quiet hours.

Neighbours: `core.redis` below; `delivery/` checks each request here, `core.orders` each delivery, `cli` creates and
revokes keys.
"""
