"""The values of core and the rules between them: deliveries, histories, states, back-off, times.

Guarantee: pure. No Redis, no HTTP, no asyncio; all values are frozen. Used by every package above; depends only on
`core.errors`.
"""
