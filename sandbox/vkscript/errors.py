"""What can be wrong with a program. The words are VK's own, as far as they are known."""


class CompileError(Exception):
    """Unable to compile code (VK's error 12)."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"Unable to compile code: {reason} in line {line}")


class RunError(Exception):
    """Runtime error occurred during code invocation (VK's error 13)."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Runtime error occurred during code invocation: {reason}")
