"""`dragoman mail`."""
