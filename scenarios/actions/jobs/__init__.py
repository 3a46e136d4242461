"""Actions about the jobs of users."""
