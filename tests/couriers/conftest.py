"""Fixtures for all couriers' tests."""

from tests.support.kannel import kannel

__all__ = ["kannel"]
