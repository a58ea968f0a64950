"""What programs are shown: one shape for every door."""
