"""Which callers may do what: API keys and idempotent requests."""
