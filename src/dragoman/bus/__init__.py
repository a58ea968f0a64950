"""The bus: who is told live what happens in traces; hints and copies, never the truth."""
