"""What happens when time passes: one duty in each file, each with `run_once(now)`."""
