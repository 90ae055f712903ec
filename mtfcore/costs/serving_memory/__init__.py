"""Whether a served model fits: bytes a device, term by term, and the largest batch and longest context that do.

First file to read: `cuts`.
"""
