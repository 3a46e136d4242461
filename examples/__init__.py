"""Bots to learn from, which run as they are. They have no code: each is a folder of YAML files with a README.md."""

from pathlib import Path

SCHOOL_BOT = Path(__file__).with_name("school-bot")
"""A menu, a form, requests, a broadcast to a group, a reminder, an invite link, a voice (`./ada demo scenarios`)."""
