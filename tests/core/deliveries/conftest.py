"""Deliveries are read and written in small pages."""

from tests.support.small_pages import small_pages

__all__ = ["small_pages"]
