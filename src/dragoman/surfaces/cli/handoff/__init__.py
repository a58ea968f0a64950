"""`dragoman handoff`."""
