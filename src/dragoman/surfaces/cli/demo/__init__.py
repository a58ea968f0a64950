"""`dragoman demo`."""
