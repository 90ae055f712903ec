"""Gradients: the backward of a named function, as named operations again. First file to read: `gradient`."""
