"""Facts for the iteration-space explorer: the best slabs, pencils and cubes for a number of processors.

    >>> facts = spaces(64, 1024)
    >>> [(each["kind"], each["cut"], each["over_u"]) for each in facts["spaces"]]
    [('slabs', (64, 1, 1), 0.0303…), ('pencils', (8, 8, 1), 0.1176…), ('cubes', (4, 4, 4), 0.1666…)]

Next file to read: `iteration_space_svg`.
"""

from __future__ import annotations

from typing import Any

from mtfcore.costs.first_paper.iteration_space import FACES, Blocks, best
from widgets.numbers import origin, quantity

Facts = dict[str, Any]
ALONG = {"A": "j", "B": "i", "C": "k"}  # the edge along which a matrix's traffic runs: the one that it lacks
PRINTED = {"pencils": 0.12, "cubes": 0.17}  # on 64 processors, in units of u (arXiv 1811.02084, Appendix B)


def spaces(processors: int, u: int) -> Facts:
    """The best blocks that cut one, two and three edges, those that repeat left out."""
    found = dict.fromkeys(best(processors, edges) for edges in (1, 2, 3))
    return {"processors": processors, "u": u, "spaces": [_space(blocks, u) for blocks in found]}


def _space(blocks: Blocks, u: int) -> Facts:
    faces = {matrix: float(blocks.face(matrix, u)) for matrix in FACES}
    return {
        "kind": blocks.kind, "cut": (blocks.i, blocks.j, blocks.k), "owner": blocks.owner_computes, "faces": faces,
        "touched": float(blocks.touched(u)), "sent": float(blocks.sent(u)), "flops": float(blocks.computation(u)),
        "over_u": float(blocks.ratio(1)), "ratio": float(blocks.ratio(u)),
    }  # fmt: skip


def cut_words(space: Facts) -> str:
    """`4 × 4 × 4`."""
    return " × ".join(map(str, space["cut"]))


def sentence(facts: Facts) -> str:
    """The ratios, best last, what the paper prints, and what a cube costs in words."""
    listed = ", ".join(f"{each['kind']} ({cut_words(each)}) {each['over_u']:.3f} u" for each in facts["spaces"])
    head = f"FLOPs for each value that a processor touches: {origin(listed, 'modelled')}."
    return " ".join([head, *_gain(facts), _owner(facts["spaces"][-1])])


def _gain(facts: Facts) -> list[str]:
    if len(facts["spaces"]) < 2:
        return []
    *_, worse, better = facts["spaces"]
    gain = better["over_u"] / worse["over_u"] - 1
    words = [
        f"{better['kind'].capitalize()} are {origin(f'{100 * gain:.0f} %', 'modelled')} better than {worse['kind']}."
    ]
    if facts["processors"] == 64:
        words.append(
            f"The paper prints {origin('{pencils} u and {cubes} u, about 40 %'.format(**PRINTED), 'published')}."
        )
    return words


def _owner(space: Facts) -> str:
    if space["owner"]:
        return "Each processor makes the whole of its tile of C: owner computes."
    return (
        f"Along k, {space['cut'][2]} processors sum each tile of C, so no owner computes it alone; "
        "a layout on two axes cuts two edges and makes pencils."
    )


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Every number of the pictures."""
    head = ("blocks", "i × j × k", "owner computes", "FLOPs", "A touched", "B touched", "C touched", "all touched",
            "sent by collectives", "FLOPs a value")  # fmt: skip
    return [head, *map(_row, facts["spaces"])]


def _row(space: Facts) -> tuple[str, ...]:
    values = (*space["faces"].values(), space["touched"], space["sent"])
    numbers = (quantity(space["flops"], "FLOP"), *(quantity(value) for value in values), f"{space['ratio']:.3g}")
    owner = "yes" if space["owner"] else "no"
    return (space["kind"], cut_words(space), owner, *(origin(number, "modelled") for number in numbers))
