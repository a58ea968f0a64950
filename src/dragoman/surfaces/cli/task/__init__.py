"""`dragoman task`."""
