"""Requests and responses that only the web console uses: keys, sessions, the log of actions, processes, audits."""
