"""A plan for inference: which slice, batch and partition give which latency, cost and memory.

    from widgets import planner
    planner()                                                      # PaLM 540B on 64 TPU v4, 64 sequences
    planner(model="palm-62b", topology="v5e:4x8", batch=32, weights="int8", prefill="ws2d-heads", decode="auto")
    planner(mode="find", limit=30, input_tokens=32768, chips="v5e v5p h100")

`find` turns the question round: a limit on the time of a token gives the slices that meet it, cheapest first, and one
press loads a plan. All times, costs and bytes are modelled by `mtf.costs.inference`; a price of a chip-hour is the
reader's own. Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 2 to 4. Lessons
07 and 13 use it. Next file to read: `frontier_search`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError
from widgets.controls import Choice, Control, IntBox, TextBox
from widgets.explorers import plan_finding, plan_inputs
from widgets.explorers.estimates import ask, known_trials, trials
from widgets.explorers.growing import Growing
from widgets.explorers.layer_steps import priced
from widgets.explorers.on_device import OnDevice
from widgets.explorers.one_plan import nearest_limit, planned, setup_of, ways_on
from widgets.explorers.plan_prices import read_prices
from widgets.figures import finding_html, finding_words, planner_svg, planner_words
from widgets.figures.on_device import device_html, device_row, stamped
from widgets.figures.plans import PHASES, Facts
from widgets.frame import Progress, Shown
from widgets.numbers import origin, quantity
from widgets.state import State, call_text
from widgets.views.pick_view import PickView, still_picks

START: State = {
    "mode": "plan", "model": "palm-540b", "topology": "v4:4x4x4", "batch": 64, "input_tokens": 2048,
    "output_tokens": 64, "cached_tokens": 0, "prefill_batch": 1, "weights": "int8", "cache": "bf16",
    "prefill": "auto", "decode": "auto",
    "reserve": 10, "price": "", "limit": 30, "chips": "v4 v5e v5p v6e h100", "most_chips": 256, "batches": "any",
}  # fmt: skip
MODES = (("plan", "one plan"), ("find", "find slices under a limit"))
FINDING = ("limit", "chips", "most_chips", "batches")
PLANNING = ("topology", "prefill", "decode")
ENDS = {"batch": (1, 4096), "prefill_batch": (0, 4096),
        "input_tokens": (1, 1 << 20), "output_tokens": (1, 1 << 16), "cached_tokens": (0, 1 << 20),
        "reserve": (0, 50), "limit": (1, 10_000), "most_chips": (1, plan_inputs.MOST_CHIPS)}  # fmt: skip
ON_A_DEVICE = "A decode step on a device"
WHAT = {"plan": "plans beside this one", "find": "slices and batches"}
CACHED = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
AT_A_TIME = (0, 1, 2, 4, 8, 16, 32, 64)
RESERVES = (0, 5, 10, 15, 20, 30)


class Planner(OnDevice, Growing):
    """The explorer; call `planner(…)`."""

    question = "Which slice, which layout and which batch answer in time, and what does a token cost?"
    call = "planner"
    start = START
    instead = "the explorer `run` simulates and compiles the same step"
    _compared = False

    def make_picture(self) -> PickView:
        view = PickView(label="the plan: answers, memory, time and partitions")
        view.on_pick(self._picked)
        return view

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        finding = state["mode"] == "find"
        return [
            Choice("mode", state["mode"], "show", options=MODES),
            *plan_inputs.model_controls(state),
            *(self._finding(state) if finding else plan_inputs.slice_controls(state)),
            *self._request(state, finding),
            *plan_inputs.type_controls(state),
            *([] if finding else self._partitions(state)),
            Choice("reserve", str(state["reserve"]), "reserve %", "Costs", "memory kept free on each device",
                   options=plan_inputs.choices(*map(str, sorted({*RESERVES, state["reserve"]})))),
            TextBox("price", state["price"], "your price of a chip-hour", "Costs",
                    "your own figure: one number, or by chip, e.g. v5e 1.2, h100 3"),
        ]  # fmt: skip

    def _request(self, state: State, finding: bool) -> list[Control]:
        cached = sorted({*CACHED, state["cached_tokens"]})
        at_a_time = sorted({*AT_A_TIME, state["prefill_batch"]})
        any_batch = Choice("batches", state["batches"], "batch", "Request",
                           options=(("any", "any that fits"), ("own", "as set")))  # fmt: skip
        batch = IntBox("batch", state["batch"], "batch", "Request", "sequences at a time", high=ENDS["batch"][1])
        return [
            *([any_batch] if finding else []), *([] if finding and state["batches"] == "any" else [batch]),
            IntBox("input_tokens", state["input_tokens"], "input", "Request", "tokens of a prompt",
                   high=ENDS["input_tokens"][1]),
            IntBox("output_tokens", state["output_tokens"], "output", "Request", "new tokens of each sequence",
                   high=ENDS["output_tokens"][1]),
            Choice("prefill_batch", str(state["prefill_batch"]), "read at a time", "Request", "prompts in one prefill",
                   options=tuple((str(n), f"{n:,}" if n else "all") for n in at_a_time)),
            Choice("cached_tokens", str(state["cached_tokens"]), "cached before", "Request",
                   "tokens of each sequence whose keys and values are there already",
                   options=tuple((str(n), f"{n:,}") for n in cached)),
        ]  # fmt: skip

    def _partitions(self, state: State) -> list[Control]:
        options = (("auto", "the best"), *plan_inputs.choices(*plan_inputs.PARTITIONS))
        return [Choice(phase, state[phase], phase, "Partition", options=options) for phase in PHASES]

    def _finding(self, state: State) -> list[Control]:
        return [
            IntBox("limit", state["limit"], "ms a token at most", "Find", high=ENDS["limit"][1]),
            TextBox("chips", state["chips"], "chips", "Find", "kinds of chips, e.g. v5e h100"),
            IntBox("most_chips", state["most_chips"], "chips at most", "Find", high=ENDS["most_chips"][1]),
        ]

    def edit(self, state: State, name: str, value: Any) -> State:
        if name in ("cached_tokens", "reserve", "prefill_batch"):
            return {**state, name: int(value)}
        if name in ("preset", "chip", "slice"):
            return plan_inputs.edited(state, name, value)
        return {**state, name: value}

    def _picked(self, value: str) -> None:
        """A row of the list loads its plan; a partition is pinned, or let go."""
        what, _, which = value.partition(":")
        with self.told():
            if what == "load" and self.value and "rows" in self.value:
                self._load(self.value["rows"][int(which)])
            elif what in PHASES:
                own = "auto" if self.state[what] == which else which
                self._go({**self.state, what: own}, True)

    def _load(self, row: Facts) -> None:
        free = dict.fromkeys(PHASES, "auto")
        self._go({**self.state, "mode": "plan", "topology": row["topology"], "batch": row["batch"], **free}, True)

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, **state: Any) -> Shown:
        plan_inputs.check_words(state)
        plan_inputs.check_sizes(state, ENDS)
        (cfg, notes), prices = plan_inputs.noted_model(state["model"]), read_prices(state["price"])
        if state["mode"] == "find":
            facts = plan_finding.looked(cfg, state, prices)
            return Shown(finding_words.sentence(facts), facts, finding_words.table(facts), notes, nearest_limit(facts))
        if state["mode"] != "plan":
            raise LayoutError(f"mode {state['mode']!r}; {' or '.join(name for name, _ in MODES)}")
        facts = planned(cfg, state, prices)
        facts["device"] = self.device_facts()
        said, rows = (*notes, *facts["warnings"]), planner_words.table(facts)
        rows = [*rows, *device_row(facts["device"], "decode step, on a device", len(rows[0]))]
        return Shown(planner_words.sentence(facts), facts, rows, said, tuple(ways_on(facts)))

    # On a device --------------------------------------------------------------------------------------------------

    def device_state(self, state: State) -> State:
        """The step in the middle of the output, under the plan's own partition."""
        kept = state["cached_tokens"] + state["input_tokens"] + (state["output_tokens"] - 1) // 2
        names = ("model", "topology", "batch", "weights", "cache", "decode")
        return {**{name: state[name] for name in names}, "kept_tokens": kept}

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        partition = settings["decode"]
        if partition == "auto":
            partition = self.value["layouts"]["decode"]
        names = ("batch", "kept_tokens", "weights", "cache")
        given = [settings[name] for name in names]
        cfg = plan_inputs.read_model(settings["model"])
        return priced(cfg, settings["topology"], "decode", partition, *given).program, settings["topology"]

    def start_job(self, kind: str, job: Any) -> None:
        if self.state["mode"] == "find":
            raise LayoutError("a list of slices is not run; show one plan, then press Run on device")
        super().start_job(kind, job)

    # What takes longer: plans beside this one, slices that nobody asked about yet --------------------------------

    def refine(self, settings: State) -> Iterator[Progress]:
        """Ask for what the picture does not have yet, a little at a time, until the settings change."""
        jobs, done, first = self._jobs(settings)
        for n, (do, some) in enumerate(jobs, done + 1):
            if settings != self.state:  # a hand has moved on; the newest request waits
                return
            with contextlib.suppress(LayoutError):  # of plans that nobody has asked for: told when somebody does
                do(some)
            yield Progress(n, done + len(jobs), f"looking at {self.what()}", value=n >= first)

    def _jobs(self, settings: State) -> tuple[list[tuple[Any, Any]], int, int]:
        """What to ask for, how much is known already, and after how much the picture has more to show."""
        cfg = plan_inputs.read_model(settings["model"])
        if settings["mode"] == "find":
            steps = plan_finding.search(cfg, settings)
            missing = [step for step in steps if known_trials(step) is None]
            return [(trials, step) for step in missing], len(steps) - len(missing), 0
        setup = setup_of(cfg, settings)
        self._compared = False
        return [(ask, some) for some in plan_finding.around(setup)], 0, len(plan_finding.changes(setup))

    def show_progress(self, progress: Progress) -> None:
        if progress.value and not (self.state["mode"] == "plan" and self._compared):
            self._compared = True
            self.redraw()

    def what(self) -> str:
        return WHAT.get(self.state["mode"], "")

    def paint(self, shown: Shown) -> None:
        self.picture.show(self._html(shown.facts))

    def _html(self, facts: Facts) -> str:
        if "rows" in facts:
            return finding_html.finding_html(facts)
        modelled = f"{origin(quantity(facts['step'], 's'), 'modelled')} on {facts['topology']}"
        strip = device_html(facts["device"], ON_A_DEVICE, modelled)
        return f"{planner_svg.planner_html(facts)}{strip}"

    def still(self, shown: Shown) -> str:
        return still_picks(self._html(shown.facts))

    def svg(self) -> str:
        if not self.value or "rows" in self.value:
            return ""
        return stamped(planner_svg.planner_file(self.value), self.value["device"], ON_A_DEVICE)

    def call_code(self) -> str:
        finding = self.state["mode"] == "find"
        left_out = PLANNING if finding else FINDING
        shown = {name: value for name, value in self.state.items()
                 if name == "model" or (value != START[name] and name not in left_out) or (name == "limit" and finding)
                 or (name in ("topology", "batch") and not finding)}  # fmt: skip
        return call_text(self.call, shown)


def planner(model: str = START["model"], topology: str = START["topology"], **settings: Any) -> Planner:
    """Plan inference of a model (a preset, with changes, or a config file) on a slice; see the module's text.

    Settings: batch, input_tokens, output_tokens, cached_tokens, prefill_batch (prompts read at a time, 0: all),
    weights, cache, prefill, decode (partitions, or "auto"), reserve (per cent), price (yours, of a chip-hour);
    mode="find" with limit (ms a token), chips, most_chips and batches.
    """
    return Planner(model=model, topology=str(topology), **settings)
