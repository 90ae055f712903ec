"""Serving a model: what `mtf.costs.inference` is made of. First file to read: `inference`."""
