"""What a coding agent has recorded itself, made into turns and events: pure, line by line.

A reader of one format (`claude_code`, `codex`, `otel`) makes `steps` of lines; the `scribe` makes
turns and events of steps; `transcript` finds the format and puts the two together.
"""
