"""Actions that ask other systems."""
