"""Surfaces: HTTP, MCP and the command line. They serve any operations and name no dialect."""
