"""Command lines: everything up to where something would run.

Next file to read: `hunting`.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.parser import Parser, fixed

from mtfcore.errors import DeviceError, LayoutError


def _command(module: str, function: str = "main") -> Callable[[str], None]:
    def read(text: str) -> None:
        import importlib

        words = text.replace("\x00", "0").split(" ")  # no system hands a program a NUL
        found = getattr(importlib.import_module(module), function)(words)
        if isinstance(found, int) and found:
            raise SystemExit(found)

    return read


def _run_words(text: str) -> None:
    """All of `tpu_runs run` but the run."""
    from tpu_runs import cases, running

    asked = running.parser().parse_intermixed_args(text.replace("\x00", "0").split(" "))
    named, given = running._read(asked.words)
    running._expect(asked, named, given)
    if named:
        cases.check(named, given)


ENDS = (LayoutError, DeviceError, SystemExit)
COMMANDS = {
    "tpu_runs list": Parser(_command("tpu_runs.listing"), fixed("product", "--records", "collective"), errors=ENDS),
    "tpu_runs run": Parser(
        _run_words,
        fixed(
            "product m=64 dtype=bf16 --on simulated --repeats 3 --topology v4:2x2x1",
            "collective kind=gather mesh=x:2 --hosts 2 --coordinator a:1",
        ),
        errors=ENDS,
    ),
    "tpu_runs compare": Parser(
        _command("tpu_runs.compare"), fixed("none.jsonl --case product", "a.jsonl b.jsonl"), errors=(*ENDS, OSError)
    ),
    "class": Parser(
        _command("tpu_runs.serve.owner", "options"),
        fixed("--on simulated --port 0 --limit 3.5 --students 3"),
        errors=ENDS,
    ),
    "chat": Parser(
        _command("mtfcore.model.chat_command", "read"), fixed("--mesh x:2 --slots 2 --top-p 0.5 --seed 1"), errors=ENDS
    ),
    "chat's /move": Parser(
        _command("mtfcore.model.chat_command", "moves"), fixed("decode=ws2d-batch mesh=x:2,y:2"), errors=ENDS
    ),
    "lab": Parser(_command("lessons.setting_up.lab", "lab_options"), fixed("--no-browser --port 9000"), errors=ENDS),
    "bundle": Parser(
        _command("lessons.setting_up.bundle", "parse"), fixed("--to x --python 3.12 --system windows"), errors=ENDS
    ),
}
