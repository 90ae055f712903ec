"""A program as plain JAX text that a reader would write by hand. First file to read: `program`."""
