"""What a layout costs, from formulas: no devices, no JAX.

    >>> est = mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, input_tokens=2048, weights="int8")
    >>> est.layouts["decode"], est.bottleneck["decode"]
    ('ws2d-batch', 'launch')

Rooms, in the order in which they are best read; in each, every file names the next:

* `first_paper`: two layers under five layouts, closed forms (Table 1 of "Mesh-TensorFlow"), and its Appendix B;
* `search`: the layout of any program that takes least time;
* `links`: mesh axes laid on the wires of a slice (`mtfcore.topologies`), and how long a collective takes there;
  `mtf.costs.slices("v4", 64)` lists the slices that there are;
* `pricing`: `mtf.price`, the seconds and bytes of any plan, step by step;
* `second_paper`: closed forms of "Efficiently Scaling Transformer Inference", and claims about it that are wrong;
* `templates`: a plan with names in place of numbers, priced for arrays of sizes and meshes at once;
* `serving_memory`: whether a served model fits, the largest batch and the longest context that do;
* `serving`: `inference`, which puts all of it together for any number of settings;
* `calibration`, `against_published`: constants fitted to published latencies, and every figure beside ours.

First file to read: `first_paper/two_layers`.
"""

from mtfcore.costs.serving.inference import inference
from mtfcore.topology_answers import slices

__all__ = ["inference", "slices"]
