"""The HTTP layer: server, routes, authentication, decoding, validation, problem documents, metrics.

Guarantees: every response that is no success is a problem document (RFC 9457) with a stable code; a handler sees only
requests that are authenticated and valid. It knows no single resource; `delivery.api` is built on it.
"""
