"""Archives: a data directory in one file, and back (backup and restore, export and import)."""
