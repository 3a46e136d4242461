"""Reads what a client sends: receives a body within its limits, decodes it, and finds every error in it."""
