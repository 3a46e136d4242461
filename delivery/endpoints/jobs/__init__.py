"""The endpoints of long-running jobs."""
