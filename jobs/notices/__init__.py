"""Notices about jobs to their users."""
