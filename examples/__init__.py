"""Examples to learn from, which run as they are: a bot, which is a folder of YAML files, and a long-running job."""

from pathlib import Path

SCHOOL_BOT = Path(__file__).with_name("school-bot")
"""A menu, a form, requests, a broadcast to a group, a reminder, an invite link, a voice (`./ada demo scenarios`)."""

JOB_HUNTER_BOT = Path(__file__).with_name("job-hunter") / "bot"
"""A bot with which a user controls this job, and an administrator those of all users."""

JOB_HUNTER = Path(__file__).with_name("job-hunter") / "hunting.py"
"""A job that searches vacancies, writes letters and applies (`./ada demo jobs`)."""
