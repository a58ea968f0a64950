"""Session files of coding agents into a hub, and traces of a hub out as OpenTelemetry spans.

A reader of one format (`claude_code`, `codex`, `otel`) turns lines into `steps`; `transcript`
detects the format and builds SAOP turns and events from the steps; `importer` sends them. `spans`
makes OpenTelemetry spans of turns and events, and `exporter` sends those.
"""
