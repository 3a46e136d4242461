"""Programs that only developers of Ada run: linters, the second run of failed tests, further Pythons."""
