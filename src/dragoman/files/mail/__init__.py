"""Letters as files."""
