"""Examples to learn from, which run as they are: a bot, which is a folder of YAML files, and a long-running job."""

from pathlib import Path

SCHOOL_BOT = Path(__file__).with_name("school-bot")
"""A menu, a form, requests, a broadcast to a group, a reminder, an invite link, a voice (`./ada demo scenarios`)."""

JOB_HUNTER = Path(__file__).with_name("job-hunter") / "hunting.py"
"""A job that searches vacancies, writes letters and applies (`./ada demo jobs`)."""
