"""`dragoman agent`."""
