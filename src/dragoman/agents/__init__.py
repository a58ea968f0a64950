"""How work reaches an agent: a program that is started for it, or a URL that it is posted to."""
