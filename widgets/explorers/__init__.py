"""One small file an explorer; each is a `Frame` with a picture. First file to read: `slices`.

They lie in a package of their own, so that `widgets.slices` is always the function and never the module.
"""
