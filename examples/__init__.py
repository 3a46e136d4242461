"""Examples to learn from, which run as they are: bots as folders of YAML files, jobs, a courier, a Helm chart."""

from pathlib import Path

SCHOOL_BOT = Path(__file__).with_name("school-bot")
"""A menu, a form, requests, a broadcast to a group, a reminder, an invite link, a voice (`./ada demo scenarios`)."""

DORMITORY_BOT = Path(__file__).with_name("dormitory-bot")
"""A form with reminders, a table of the answers, an SMS to those who do not answer, a weekly report."""

JOB_HUNTER_BOT = Path(__file__).with_name("job-hunter") / "bot"
"""A bot with which a user controls this job, and an administrator those of all users."""

JOB_HUNTER = Path(__file__).with_name("job-hunter") / "hunting.py"
"""A job that searches vacancies, writes letters and applies (`./ada demo jobs`)."""

NODE_COURIER = Path(__file__).with_name("node-courier")
"""A courier for SMS in Node, beside those of Ada (docs/other-languages.md)."""

NODE_QUEUE = Path(__file__).with_name("node-queue")
"""The queue as a module of Node with named functions, and a program that uses them (docs/other-languages.md)."""

HELM_CHART = Path(__file__).with_name("helm-chart")
"""The processes of Ada on Kubernetes (docs/kubernetes.md)."""
