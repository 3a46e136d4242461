"""The workshop on the audited stack."""

from tests.support.workshop import shop

__all__ = ["shop"]
