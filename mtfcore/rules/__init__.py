"""The rules: from where tensors lie to the steps an operation needs. Pure functions; no devices, no JAX.

`moves` lists what one tensor can do; `resharding` takes it from one sharding to another by a shortest path;
`choosing` decides how an operation with several operands is cut over the mesh; `reshaping` carries axes through
splits and merges; `operations` puts these together, one function an operation. `two_stages`, `spatial` (with `halo`)
and `looping` plan what needs more than one local step, `moving` writes moves as steps, and `pruning` drops what
nothing reads. Next file to read: `moves`.
"""
