"""What crosses the wires: mesh axes laid on grid axes, and how long a collective takes there.

First file to read: `wiring`.
"""
