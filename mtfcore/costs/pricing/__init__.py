"""Any planned program in seconds: what each step asks of a device, what that takes, and all of them together.

`mtf.price` is here; its formulas serve `templates` too. First file to read: `work`.
"""
