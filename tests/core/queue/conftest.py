"""Fixtures of the queue's tests."""

from tests.support.workshop import workshop

__all__ = ["workshop"]
