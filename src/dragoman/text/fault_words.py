"""What went wrong, in words: a fault of the system without the number that it has there."""


def describe_exception(error: Exception) -> str:
    """Describe an exception without its error number, with its file or address if it has one."""
    if not isinstance(error, OSError) or not error.strerror:
        return f"{error}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
