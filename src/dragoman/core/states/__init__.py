"""How things stand: what follows from the events of each stream."""
