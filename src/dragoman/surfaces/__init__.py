"""The doors: each serves whatever it is handed."""
