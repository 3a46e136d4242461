"""What happens to a job whose process was lost, blocked or interrupted."""
