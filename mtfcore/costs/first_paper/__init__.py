"""The first paper's closed forms: two layers under five layouts, their memory, time and growth, and any product.

Source: "Mesh-TensorFlow" (arXiv 1811.02084), section 8, Table 1 and Appendix B. First file to read: `two_layers`.
"""
