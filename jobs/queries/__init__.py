"""Queries of jobs: functions of a kind that answer from what is stored, and the process that calls them."""
