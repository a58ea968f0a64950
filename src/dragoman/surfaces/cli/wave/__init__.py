"""`dragoman wave`, `reserve` and `guard`."""
