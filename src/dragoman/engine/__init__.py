"""What happens to a command: queued, decided, recorded, answered; and how the record is read."""
