"""Independent counters: what a program really communicates and computes.

`count` reads the jaxpr of any JAX function, `count_stablehlo` what is handed to the compiler, `count_hlo_text` what a
compiler made of it. They import nothing of the planner, so that plans can be checked against them. All three answer
with a `Counts`: print it.

    counts = count(step, params, batch)          # arrays or jax.ShapeDtypeStruct; nothing is run
    counts.link_bytes                            # sent by one device, loops multiplied
    counts.by_kind(), counts.by_axes()
    counts.flops                                 # 2 a multiply-add; per device inside shard_map (see counts.scope)

Next file to read: facts.py.
"""

from mtfcore.counting.facts import Collective, Counts, sent_bytes
from mtfcore.counting.hlo_text import count_hlo_text
from mtfcore.counting.jaxprs import count, count_jaxpr
from mtfcore.counting.stablehlo import count_stablehlo

__all__ = ["Collective", "Counts", "count", "count_hlo_text", "count_jaxpr", "count_stablehlo", "sent_bytes"]
