"""Handoffs as files: the audit log, its replay, and the artifacts that are kept."""
