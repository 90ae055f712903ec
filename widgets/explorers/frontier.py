"""How soon a token comes against what it costs, for models and chips side by side, and what was published.

    from widgets import frontier
    frontier()                                                     # Figure 1's three models on TPU v4
    frontier(models="palm-62b", chips="v4 v5e h100", weights="int8")
    p = planner(); frontier(planner=p)                             # a picked point goes to a planner of yours

Each dot is one plan: slices of each power of two, batches of each power of two, the best partitions. Lines join the
plans that no other of their series beats; hollow marks were published. Pick a mark, and the planner below has it.
Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), Figure 1. Lessons 07 and 11 use it.
Next file to read: `layer_steps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets

from mtfcore.costs.pricing.rates import rates
from mtfcore.reference import latency_rows
from widgets.closing import close_all
from widgets.controls import Choice, Control, IntBox, TextBox
from widgets.explorers import plan_inputs
from widgets.explorers.estimates import Setup, known_trials, plan, trials
from widgets.explorers.frontier_search import read_list, read_types, search
from widgets.explorers.growing import Growing
from widgets.explorers.plan_finding import read_chips
from widgets.explorers.planner import START as PLANNER
from widgets.explorers.planner import Planner
from widgets.figures.frontier import Facts, frontier_facts, published_points, read_key
from widgets.figures.frontier_svg import TITLES, frontier_svg, legend_html, saved_frontier
from widgets.figures.frontier_words import sentence, table
from widgets.frame import Progress, Shown
from widgets.state import State
from widgets.views.pick_view import PickView, still_picks

START: State = {
    "models": "palm-540b heads=64, palm-62b, palm-8b", "chips": "v4", "weights": "bf16 int8", "cache": "bf16",
    "input_tokens": 2048, "output_tokens": 64, "most_chips": 256, "most_batch": 1024, "chosen": "",
}  # fmt: skip
ENDS = {"input_tokens": (1, 1 << 20), "output_tokens": (1, 1 << 16), "most_chips": (1, plan_inputs.MOST_CHIPS),
        "most_batch": (1, 4096)}  # fmt: skip
SHOWN = ("Figure 1", "Table 2", "Table 3")


class Frontier(Growing):
    """The explorer; call `frontier(…)`."""

    question = "How soon can a token come, and what does it cost to have it sooner?"
    call = "frontier"
    start = START
    always = ("models", "chips", "weights")

    def __init__(self, planner: Planner | None = None, **settings: Any) -> None:
        self.planner, self.own = planner, planner is None
        self.below = ipywidgets.VBox()
        super().__init__(**settings)
        self.children = [*self.children, self.below]
        if self.state["chosen"]:
            self._load()

    def make_picture(self) -> PickView:
        view = PickView(label="latency against cost of many plans")
        view.on_pick(self._picked)
        return view

    def close(self) -> None:
        if self.own and self.planner is not None:
            self.planner.close()
        close_all(self.below)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        known = read_list(state["models"])
        free = [name for name in plan_inputs.presets() if name not in known]
        return [
            TextBox("models", state["models"], "names", "Models", "presets, or with changes: palm-540b heads=64",
                    wide=True),
            Choice("add", "", "add", "Models", options=(("", "…"), *plan_inputs.choices(*free))),
            TextBox("chips", state["chips"], "chips", "Slices", "kinds of chips, e.g. v4 v5e h100"),
            IntBox("most_chips", state["most_chips"], "chips at most", "Slices", high=ENDS["most_chips"][1]),
            IntBox("most_batch", state["most_batch"], "batch at most", "Request", high=ENDS["most_batch"][1]),
            IntBox("input_tokens", state["input_tokens"], "input", "Request", high=ENDS["input_tokens"][1]),
            IntBox("output_tokens", state["output_tokens"], "output", "Request", high=ENDS["output_tokens"][1]),
            TextBox("weights", state["weights"], "weights", "Types", "some of bf16 int8 f32"),
            Choice("cache", state["cache"], "cache", "Types", options=plan_inputs.choices(*plan_inputs.CACHE_TYPES)),
        ]  # fmt: skip

    def edit(self, state: State, name: str, value: Any) -> State:
        if name == "add":
            return {**state, "models": ", ".join([*read_list(state["models"]), value])} if value else state
        return {**state, name: value}

    def _picked(self, value: str) -> None:
        what, _, which = value.partition(":")
        with self.told():
            if self.value and what in ("point", "published"):
                chosen = self.value["points"][int(which)]["key"] if what == "point" else f"published {which}"
                self._go({**self.state, "chosen": "" if chosen == self.state["chosen"] else chosen}, True)
                self._load()

    def _load(self) -> None:
        """Give the chosen plan to the planner; ours is made when first needed, below."""
        settings = self._settings()
        if not settings:
            return
        if self.planner is None:
            self.planner = Planner(**settings)
            self.below.children = [self.planner]
        else:
            self.planner.state = settings

    def _settings(self) -> State:
        """The planner's state for what is chosen; its own price and reserve stay."""
        own = self.planner.state if self.planner is not None else PLANNER
        kept = {name: own[name] for name in ("price", "reserve")}
        lengths = {name: self.state[name] for name in ("input_tokens", "output_tokens", "cache")}
        if found := read_key(self.state["chosen"]):
            return {**kept, **lengths, **found, "prefill_batch": 0}
        point = _published(self.value or {}, self.state["chosen"])
        if point is None:
            return {}
        pinned = {point["phase"]: point["partition"]}
        names = ("model", "weights", "topology", "batch", "input_tokens", "output_tokens", "cache")
        return {**kept, **{name: point[name] for name in names}, **pinned, "prefill_batch": 0}

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        plan_inputs.check_sizes(state, ENDS)
        models, types = read_list(state["models"]), read_types(state["weights"])
        chips = read_chips(state["chips"])
        plan_inputs.check_words({"weights": types[0], "cache": state["cache"]})
        steps = search(state)
        known = [(model, step, found) for model, step in steps if (found := known_trials(step)) is not None]
        tried = [{**trial, "model": model, "weights": step[0].weights} for model, step, found in known
                 for trial in found]  # fmt: skip
        lengths = (state["input_tokens"], state["output_tokens"])
        published = published_points((row for row in latency_rows() if row.table in SHOWN),
                                     [model.split()[0] for model in models], lengths)  # fmt: skip
        published = [point for point in published if point["chip"] in chips and point["weights"] in types]
        about = {"models": models, "chips": chips, "chosen": state["chosen"], "input_tokens": lengths[0],
                 "output_tokens": lengths[1], "n_waiting": len(steps) - len(known), "n_slices": len(steps),
                 "uncalibrated": [chip for chip in chips if not rates(chip, "calibrated").is_calibrated]}  # fmt: skip
        facts = frontier_facts(tried, published, about)
        facts["against"] = _against(facts, state["chosen"])
        return Shown(sentence(facts), facts, table(facts))

    def refine(self, settings: State) -> Iterator[Progress]:
        """Ask for the slices that nobody has asked about, until the settings change."""
        steps = [step for _, step in search(settings)]
        missing = [step for step in steps if known_trials(step) is None]
        for n, step in enumerate(missing, len(steps) - len(missing) + 1):
            if {**settings, "chosen": ""} != {**self.state, "chosen": ""}:  # the newest request waits
                return
            trials(step)
            yield Progress(n, len(steps), f"looking at {self.what()}")

    def what(self) -> str:
        return "slices and batches"

    def paint(self, shown: Shown) -> None:
        self.picture.show(_html(shown.facts))

    def still(self, shown: Shown) -> str:
        return still_picks(_html(shown.facts))

    def svg(self) -> str:
        return saved_frontier(self.value) if self.value else ""


def _html(facts: Facts) -> str:
    slots = "".join(f'<div class="mw-slot">{frontier_svg(facts, phase)}</div>' for phase in TITLES)
    return f'<div class="mw-charts">{slots}</div>{legend_html(facts)}'


def _published(facts: Facts, chosen: str) -> Facts | None:
    word, _, number = chosen.partition(" ")
    if word != "published" or not number.isdecimal() or int(number) >= len(facts.get("published", ())):
        return None
    return facts["published"][int(number)]


def _against(facts: Facts, chosen: str) -> Facts | None:
    """A published point, and what the same plan takes by our model."""
    point = _published(facts, chosen)
    if point is None:
        return None
    cfg = plan_inputs.read_model(point["model"])
    pinned = {point["phase"]: point["partition"]}
    own = plan(Setup(cfg, point["topology"], point["batch"], point["input_tokens"], point["output_tokens"],
                     weights=point["weights"], cache=point["cache"], **pinned))  # fmt: skip
    return {"published": point, "seconds": own["step_seconds" if point["phase"] == "decode" else "prefill_seconds"]}


def frontier(
    models: str = START["models"], chips: str = START["chips"], weights: str = START["weights"],
    planner: Planner | None = None, **settings: Any,
) -> Frontier:  # fmt: skip
    """Latency against cost of models (separated by commas) on kinds of chips, with weights stored as given types.

    Settings: cache, input_tokens, output_tokens, most_chips, most_batch, chosen. `planner` is one of yours to load.
    """
    return Frontier(planner, models=models, chips=chips, weights=weights, **settings)
