"""Live distribution of trace events to subscribers; hints and copies, never the truth."""
