"""A job that watches a price, with its tests."""
