"""Addresses in the channels, and phone numbers."""
