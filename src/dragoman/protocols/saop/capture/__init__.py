"""Import a coding agent's own session record as turns and events; pure, line by line.

A reader of one format (`claude_code`, `codex`, `otel`) turns lines into `steps`; `transcript`
detects the format and builds turns and events from the steps.
"""
