"""What happens in one hop of a collective, and why, in a sentence; and the table that says what the picture says.

    >>> why(traffic_facts("all_gather", (("x", 8),), "ring", 1 << 20), 3)[:48]
    'Step 3 of 7: each device passes on what it recei'

Next file to read: `traffic_places`.
"""

from __future__ import annotations

from mtfcore.schedules import WAYS
from widgets.figures.traffic import NAMES, Facts, carried
from widgets.numbers import count, modelled

MEANS = {
    "all_gather": "each device has one block and wants all of them",
    "reduce_scatter": "each device has one addend of everything and wants its own block of the sum",
    "all_reduce": "each device has one addend of everything and wants the whole sum",
    "all_to_all": "each device has one block for every other device",
    "permute": "each device has one array, and the next device wants it",
    "halo_exchange": "each device has an edge for the device before it and one for the device after it",
}
WHY = {
    "all_gather": "each device passes on what it received in the step before (first: its own block), and keeps it",
    "reduce_scatter": "each device sends a sum so far towards its owner, and the receiver adds its own addend to it",
    "again": "the blocks of the sum are finished; now they are gathered: each device passes on what it received",
    "all_to_all": "each block has one reader; devices between pass it on, so links carry other devices' data too",
    "permute": "each array goes link by link to the device that wants it",
    "halo_exchange": "edges go to the neighbours, but not round the end",
}
END = {
    "all_gather": "now every device has all {n} blocks",
    "reduce_scatter": "now every device has its block with all {n} addends",
    "all_reduce": "now every device has the whole sum",
    "all_to_all": "now every device has a block from each of the {n}",
    "permute": "now every device has the array of the one before",
    "halo_exchange": "now every device has its neighbours' edges",
}


def why(facts: Facts, hop: int) -> str:
    """The sentence after so many steps; 0 is before the first."""
    if not facts["steps"]:
        return f"A group of one: {NAMES[facts['kind']]} has nothing to send."
    return _before(facts) if hop == 0 else _during(facts, hop)


def _before(facts: Facts) -> str:
    way, steps = WAYS[facts["way"]], count(facts["steps"], "step")
    return (
        f"Before: {MEANS[facts['kind']]}; it holds {modelled(facts['n_bytes'])}. In {steps} one device sends "
        f"{_sends(facts)}, and the busiest link carries {modelled(facts['busiest'])}. A {way}."
    )


def _sends(facts: Facts) -> str:
    """What one device sends; where devices pass on for others, both numbers."""
    own, all_of_it = modelled(facts["payload"]), modelled(facts["sent"])
    if facts["sent"] > facts["payload"]:
        return f"{own} of its own, and with what it passes on {all_of_it} on average"
    return all_of_it + (" on average" if facts["sent"] != facts["payload"] else "")


def _during(facts: Facts, hop: int) -> str:
    moves, kind = facts["moves"][hop - 1], facts["kind"]
    link, _, label, combine = moves[0]
    source, target = facts["links"][link][:2]
    phase = "again" if combine == "store" else "reduce_scatter"
    reason = WHY[phase if kind == "all_reduce" else kind]
    done = "adds its own addend" if combine == "add" else "keeps it" if kind == "all_gather" else "takes it"
    end = f" {END[kind].format(n=facts['n_devices']).capitalize()}." if hop == facts["steps"] else ""
    most = modelled(max(move[1] for move in moves) * facts["piece_bytes"])
    return (
        f"Step {hop} of {facts['steps']}: {reason}. {count(len(moves), 'message')} at once, up to {most} each: device "
        f"{source} sends {_block(label)} to device {target}, which {done}. The busiest link has carried "
        f"{modelled(max(carried(facts, hop)))} so far.{end}"
    )


def _block(label: str) -> str:
    """What a message carries, in words: `3`, `0→7…`."""
    name, more = label.rstrip("…"), " and more" if label.endswith("…") else ""
    return "the block from {} for {}".format(*name.split("→")) + more if "→" in name else f"block {name}{more}"


def table(facts: Facts, hop: int) -> list[tuple[str, ...]]:
    """Devices, then links, after so many steps."""
    rows: list[tuple[str, ...]] = [("device or link", "in this step", "so far")]
    counts = facts["counts"][hop]
    rows += [(f"device {n}", f"holds {count(held, 'piece')}", _letters(facts, hop, n)) for n, held in enumerate(counts)]
    now = {link: (pieces, label) for link, pieces, label, _ in (facts["moves"][hop - 1] if hop else [])}
    for number, sent in enumerate(carried(facts, hop)):
        source, target, axis, _ = facts["links"][number]
        pieces, label = now.get(number, (0, ""))
        carries = f"carries block {label}: {modelled(pieces * facts['piece_bytes'])}" if pieces else "idle"
        rows.append((f"link {source} → {target} ({facts['mesh'][axis][0]})", carries, modelled(sent)))
    return rows


def _letters(facts: Facts, hop: int, device: int) -> str:
    """Which blocks a device holds, where the picture draws them."""
    if not facts["held"]:
        return modelled(facts["counts"][hop][device] * facts["piece_bytes"])
    letters = facts["held"][hop][device]
    full = [str(n) for n, letter in enumerate(letters) if letter == "z"]
    part = [str(n) for n, letter in enumerate(letters) if letter not in "0z-"]
    waits = [str(n) for n, letter in enumerate(letters) if letter == "-"]
    words = ((full, "whole"), (part, "in part"), (waits, "for others"))
    return "; ".join(f"{name}: {', '.join(found)}" for found, name in words if found) or "nothing"
