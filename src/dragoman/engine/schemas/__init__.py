"""Resource schemas: the JSON shapes that every surface returns."""
