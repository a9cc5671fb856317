"""What contract tests say with: pytest rewrites no `assert` of an installed package."""


def expect(holds: bool, message: str) -> None:
    """Raise AssertionError with the message where it does not hold."""
    if not holds:
        raise AssertionError(message)
