"""Tasks as files: written, edited, moved, and the folders that go with them."""
