"""CCOS 019: an intent goes to an agent as a TaskRequest, and comes back as a TaskResult."""
