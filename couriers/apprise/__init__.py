"""The channel apprise: rooms of staff in Teams, Mattermost, Zulip, Slack, ntfy and others, by the library apprise."""
