"""What happened, in words for people."""
