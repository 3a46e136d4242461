"""Texts: marks, characters, parts, plurals."""
