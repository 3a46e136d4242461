"""Proves the invariants of docs/proof.md on a live server, and repairs what can be repaired."""
