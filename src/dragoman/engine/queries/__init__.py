"""Queries: lists, pages and single records, as they are now and as they were."""
