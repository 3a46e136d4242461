"""Recovers a job whose iteration is overdue or was interrupted."""
