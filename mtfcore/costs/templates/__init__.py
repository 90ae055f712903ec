"""A plan with names in place of numbers, so that one plan prices arrays of sizes and meshes at once.

First file to read: `sizes`.
"""
