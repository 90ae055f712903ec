"""Pure pictures: facts as JSON, and SVG text from facts. No widget, no JAX, no tensor is ever made.

Next file to read: `slices`.
"""
