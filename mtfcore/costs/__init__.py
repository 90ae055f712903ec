"""What a layout costs, from formulas: no devices, no JAX.

    >>> from mtfcore.costs import two_layers
    >>> two_layers.ROWS["batch:rows hidden:cols"].printed.ratio
    'c/d_h + r/b'

`two_layers` (Table 1 of "Mesh-TensorFlow"), `memory`, `paper_time`, `scaling` and `iteration_space` (its Appendix B)
are closed forms; `two_layers_programs` plans the same network, so that tests can hold one against the other.
`second_paper` has those of "Efficiently Scaling Transformer Inference", which layout moves least, and wrong claims.
`liveness` is what any plan holds at its fullest moment, and `search` looks for the layout that takes least time.
`pricing` (as `mtf.price`) gives the seconds of any plan on a slice of chips: on the links of `wiring`, `collectives`;
what each step asks, `step_work`; what that takes, `step_time`. `templates` has the same of a plan with names in place
of numbers, for arrays of sizes and meshes. `inference_memory` says whether a served model fits, and
`memory_limits` the largest batch and the longest context that do. `inference` puts all of it together for any number of
settings at once; `serving` is what it is made of. First file to read: `two_layers`.
"""

from mtfcore.costs.serving.inference import inference

__all__ = ["inference"]
