"""Bare mechanisms and other queues, to compare with in the same run."""
