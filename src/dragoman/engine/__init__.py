"""Request handling: routing, batches, queries, verification, and the ports to the outside."""
