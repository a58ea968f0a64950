"""Deciders about handoffs, and about the work queue beside them."""
