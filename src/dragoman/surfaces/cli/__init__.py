"""Command line: every command, its options, and how results are printed."""
