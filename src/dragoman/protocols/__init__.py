"""What the words mean: one folder per dialect, the same file names in each."""
