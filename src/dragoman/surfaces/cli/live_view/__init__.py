"""Live view of a hub in a terminal: a client of its HTTP API and stream, drawn with textual."""
