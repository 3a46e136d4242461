"""Reads what the server sends by itself: keyspace events, and new entries of a stream."""
