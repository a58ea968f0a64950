"""`dragoman trace`, `watch`, `otlp` and `rewind`."""
