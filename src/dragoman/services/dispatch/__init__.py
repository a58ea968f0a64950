"""Dispatch: claims ready tasks for agents that the hub can start, and supervises their runs."""
