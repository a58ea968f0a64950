"""How the record is read: lists, pages and single things, now and as they were."""
