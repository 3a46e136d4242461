"""Bare mechanisms and other systems to compare with in the same run."""
