"""Endpoints of the operators' view of a running installation."""
