"""What went wrong, in words: a fault of the system without the number that it has there."""


def in_words(error: Exception) -> str:
    """What an exception says; of a file or an address also which one it is about."""
    if not isinstance(error, OSError) or not error.strerror:
        return f"{error}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
