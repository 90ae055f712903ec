"""The inference engine: reads prompts and writes tokens, on any mesh and under any of the second paper's partitions.

`programs` are what is launched, `moving_caches` what goes between two phases, `slots` who is served where, `launches`
the arrays and the runs, `queue` whose turn it is, `choosing` what "auto" means; `engine` holds it all, `conversation`
keeps a cache from turn to turn. Source: arXiv 2211.05102. First file to read: `programs`.
"""
