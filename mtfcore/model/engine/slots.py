"""Who is served where: slots of the cache, handed out so that every device looks after as many sequences as the others.

    slots = Slots(8, blocks=4)          # sequences 0-1 lie on one block of devices, 2-3 on the next, …
    slots.take(), slots.take()          # 0 and 2: another block each time
    slots.give_back(0)

Where decode shards its cache over the batch, a block of neighbouring slots lies on the same devices. A request carries
all that is known of one sequence, so a slot can be left and another taken without losing a token. Next file to read:
`choosing`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from mtfcore.errors import LayoutError

LEAST_CHUNK = 8  # shorter ends of prompts are filled up to this, so that few shapes are compiled


class Slots:
    """Which of `n` slots are free; `blocks` is how many groups of devices share them out."""

    def __init__(self, n: int, blocks: int = 1) -> None:
        self.n, self.blocks = n, blocks
        self.taken: set[int] = set()

    @property
    def free(self) -> int:
        return self.n - len(self.taken)

    def block(self, slot: int) -> int:
        """The group of devices that a slot lies on."""
        return slot * self.blocks // self.n

    def load(self) -> list[int]:
        """How many taken slots each block has."""
        found = [0] * self.blocks
        for slot in self.taken:
            found[self.block(slot)] += 1
        return found

    def take(self) -> int:
        """The first free slot of the least loaded block that has one."""
        if not self.free:
            raise LayoutError(f"all slots ({self.n}) are taken; end a conversation, or make an engine with more slots")
        load = self.load()
        slot = min((s for s in range(self.n) if s not in self.taken), key=lambda s: (load[self.block(s)], s))
        self.taken.add(slot)
        return slot

    def give_back(self, slot: int) -> None:
        """Free again; what its cache holds is written over by the next."""
        self.taken.discard(slot)


@dataclass(frozen=True)
class Drawing:
    """How a sequence's tokens are chosen: temperature 0 takes the likeliest (arXiv 1805.04833, 1904.09751)."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    @property
    def is_drawn(self) -> bool:
        return self.temperature > 0


@dataclass
class Request:
    """One sequence: what is still to be read, what was made, where it is kept."""

    number: int
    unread: list[int]  # tokens that are known and not in the cache yet, in order
    most: int  # tokens that it may make
    drawing: Drawing = field(default_factory=Drawing)
    stop: frozenset[int] = frozenset()
    sequence: int = 0  # with the seed and a token's place, what that is drawn by
    made: list[int] = field(default_factory=list)
    kept: int = 0  # tokens in the cache, from its beginning
    slot: int | None = None
    stays: bool = False  # its slot stays when it has finished: that of a conversation
    others: tuple[Request, ...] = ()  # samples of the same prompt, which is read once
    done: bool = False
    n_told: int = 0  # how many of those made its generator has told of

    @property
    def samples(self) -> tuple[Request, ...]:
        """Itself and the others that begin with its prompt."""
        return (self, *self.others)

    @property
    def to_read(self) -> list[int]:
        """What prefill reads of it: all that is known, but of samples of one prompt the last token, behind which each
        goes on by itself."""
        return self.unread[:-1] if self.others else self.unread

    def without(self, gone: Collection[int]) -> Request | None:
        """What is left of its samples when some, named by their ids, are gone: the first reads for the others."""
        left = [sample for sample in self.samples if id(sample) not in gone]
        if left:
            left[0].others = tuple(left[1:])
        return left[0] if left else None

    def untold(self) -> list[int]:
        """What it made since this was asked last."""
        found = self.made[self.n_told :]
        self.n_told += len(found)
        return found

    def accept(self, token: int, n_kept: int) -> bool:
        """One more token, made of `n_kept` more that are in the cache now; whether the sequence ends with it."""
        self.kept += n_kept
        self.unread = [token]
        self.made.append(token)
        self.done = len(self.made) >= self.most or token in self.stop
        return self.done


def bucket(size: int, most: int, least: int = LEAST_CHUNK) -> int:
    """The size that is launched: `most`, or the least quarter of it (of that, …) that holds `size`."""
    found = most
    while found // 4 >= max(size, least):
        found //= 4
    return found
