"""Wrong calls that take some making: damaged files, broken schedules, an owner's limits. `catalogue` has the others.

Next file to read: `page`.
"""

from __future__ import annotations

from collections.abc import Callable

from errors.entry import Wrong


def _after(*lines: str) -> Callable[[str], str]:
    return lambda line: "\n".join([*lines, line])


_engine = _after("small = make.small(layers=1)", "params = make.random_params(small)",
                 "engine = mtf.model.Engine(small, params, 'x:2', slots=2)")  # fmt: skip
_gguf = _after("small = make.small(layers=1)", "params = make.random_params(small)")
_read_gguf = 'mtf.model.load(files / "a.gguf")'
_folder = _after("import tokenizers", "small = make.small(layers=1)", "params = make.random_params(small)",
                 'folder = make.write_folder(files / "m", small, params)')  # fmt: skip
_safetensors = _after("import json", "from mtfcore.model.files.safetensors_check import check", "def file(header):",
                      '    (files / "a").write_bytes(len(header).to_bytes(8, "little") + header.encode() + b"1234")',
                      "")  # fmt: skip
_loop = _after("@mtf.function", 'def f(x: "batch"):', "    return mtf.repeat(mtf.relu, 3, (), x)", "",
               'run = mtf.simulate(mtf.plan(f, "rows:2", sizes="batch:4"))', "run(np.ones(4))")  # fmt: skip
RARE = {
    "Loops, schedules, windows": [
        Wrong(_loop("run.values((0, 0), 0, 9)"), "0 2 9"),
        Wrong(
            "import dataclasses\n"
            'whole = mtf.schedules.schedule("reduce_scatter", (4,), "ring")\n'
            "cut = dataclasses.replace(whole, hops=whole.hops[:-4])\n"
            "mtf.schedules.replay(cut, [np.ones(8)] * 4)",
            "device",
            ends=False,
        ),
        Wrong(
            '@mtf.function\ndef f(x: "a:1 b:3"):\n    return mtf.overlap_add(x, "a", "b", padding=(2, 2))\n\n'
            'mtf.plan(f, "rows:2")',
            "a:1 2 nothing",
            ends=False,
        ),
    ],
    "Compilers' texts, rarer": [
        Wrong(
            "from mtfcore.counting import count_hlo_text\n"
            'calls = [f"%c{n} {{\\n ROOT %r = f32[] call(), to_apply=%c{n + 1}\\n}}" for n in range(300)]\n'
            'text = "\\n".join(["HloModule m", "%c300 {\\n ROOT %r = f32[] iota()\\n}", *calls[:0:-1]])\n'
            'count_hlo_text(text + "\\nENTRY %c0 {\\n ROOT %r = f32[] call(), to_apply=%c1\\n}")',
            "over",
            ends=False,
        ),
        Wrong(
            "from mtfcore.compiling import schedule\n"
            'schedule.read("HloModule m\\nENTRY %a {\\n ROOT %r = f32[] call(), to_apply=%a\\n}")',
            "call themselves",
            ends=False,
        ),
        Wrong(
            "from mtfcore.counting import count_hlo_text\n"
            'count_hlo_text("""HloModule m\n'
            "%c {\n %x = s32[] copy(%y)\n %y = s32[] copy(%x)\n ROOT %r = pred[] compare(%x, %y), direction=LT\n}\n"
            "%b {\n %p = (s32[]) parameter(0)\n ROOT %t = (s32[]) tuple(%p)\n}\n"
            'ENTRY %a {\n %i = (s32[]) parameter(0)\n ROOT %w = (s32[]) while(%i), condition=%c, body=%b\n}""")',
            "copy itself",
            ends=False,
        ),
    ],
    "Engines, rarer": [
        Wrong(
            "from mtfcore.costs.templates.learned import Knowledge\n"
            '@mtf.function\ndef f(x: "batch"):\n    return mtf.reshape(x, "a:2 b:2")\n\n'
            '@mtf.function\ndef g(x: "batch"):\n    return mtf.relu(mtf.relu(x))\n\n'
            'plans = [mtf.plan(one, "rows:2", sizes="batch:4") for one in (f, g)]\n'
            "Knowledge().template(lambda turn: (plans[turn > 0], {}))",
            "template rows:2",
            ends=False,
        ),
        Wrong(_engine("engine.step()"), "submit"),
        Wrong("from mtfcore.model.engine.slots import Slots\nslots = Slots(1)\nslots.take(), slots.take()", "slots 1"),
        Wrong(_engine("talk = engine.conversation()\ntalk.end()\nlist(talk.say([1], 1))"), "ended conversation"),
        Wrong(_engine("for _ in range(3):\n    list(engine.conversation().say([1], 1))"), "slots"),
        Wrong(_engine('mtf.model.Engine(small, {**params, "wq": np.ones(3)}, "x:2")'), "wq float64[3]", ends=False),
        Wrong(
            "small = make.small(layers=1, heads=6, kv_heads=3)\n"
            'mtf.model.Engine(small, make.random_params(small), "x:3")',
            "x:3 topology",
        ),
    ],
    "Models' files, rarer": [
        Wrong(f'(files / "a.gguf").write_bytes(b"GGUF\\x09" + bytes(30))\n{_read_gguf}', "a.gguf 9"),
        Wrong(
            _gguf(f'make.write_gguf(files / "a.gguf", small, params, architecture="clip")\n{_read_gguf}'), "clip llama"
        ),
        Wrong(
            _gguf(
                'make.write_gguf(files / "a.gguf", small, params, values={"tokenizer.ggml.pre": "smolm"})\n'
                f"found = {_read_gguf}\nfound.tokenizer"
            ),
            "smolm smollm",
        ),
        Wrong(_safetensors('file(\'{"__metadata__": 5}\')\ncheck(files / "a")'), "__metadata__", ends=False),
        Wrong(_safetensors('file("{}")\ncheck(files / "a")'), "0 4", ends=False),
        Wrong(
            _folder(
                "many = {str(n): n for n in range(5_000)}\n"
                'tokenizers.Tokenizer(tokenizers.models.BPE(many, [])).save(str(folder / "tokenizer.json"))\n'
                "mtf.model.load(folder)"
            ),
            "tokenizer.json 5000",
            ends=False,
        ),
        Wrong(
            _folder(
                'tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, [])).save(str(folder / "tokenizer.json"))\n'
                '(folder / "chat_template.jinja").write_bytes(b"\\x80")\nmtf.model.load(folder)'
            ),
            "chat_template.jinja UTF-8",
            ends=False,
        ),
    ],
    "Explorers and exercises, rarer": [
        Wrong("from widgets import generate\nsentence = generate(others=8, slots=2).sentence", "2 1"),
        Wrong('from widgets import generate\ngenerate(prompt=" ").press_run("run")', "press Write"),
        Wrong(
            "from widgets import layouts\nhuge = layouts(batch=10**6, io=10**6, hidden=10**6)\n"
            "huge.settle()\nhuge.device_program(huge.device_state(huge.state))",
            "memory smaller",
        ),
        Wrong("from widgets.learning.exercises import asked\nasked(...)", "dots", ends=False),
        Wrong(
            "from collections.abc import Callable\nfrom widgets.learning.exercises import asked\n"
            "asked(lambda: ..., Callable[..., int])()",
            "dots",
            ends=False,
        ),
    ],
    "Runs and the set-up, rarer": [
        Wrong(
            "from types import SimpleNamespace\nfrom tpu_runs.records import Record\nfrom widgets import traffic\n"
            'failed = Record(case="collective", status="failed", reason="no memory is left")\n'
            "owner = SimpleNamespace(start=lambda *_: SimpleNamespace(wait=lambda progress: failed))\n"
            "shown = traffic()\nlist(shown._ask(owner, shown.device_state(shown.state)))",
            "ended memory",
            ends=False,
        ),
        Wrong(
            "from types import SimpleNamespace\nfrom tpu_runs.against import slice_of\n"
            'slice_of(SimpleNamespace(where={"device_kind": "TPU v5 lite"}, share=None), "v4:2x2x1")',
            "v4:2x2x1 TPU",
            ends=False,
        ),
        Wrong(
            "from tpu_runs.serve.limits import Limits, Rate\nrate = Rate(Limits(), clock=lambda: 0)\n"
            'for _ in range(999):\n    rate.take("somebody")',
            "ask",
        ),
        Wrong(
            "from unittest import mock\nfrom lessons.setting_up import bundle_target\n"
            'with mock.patch("platform.machine", return_value="vax"), mock.patch("sys.platform", "vms"):\n'
            "    bundle_target.here()",
            "vax linux",
            ends=False,
        ),
        Wrong(
            "from unittest import mock\nfrom lessons.setting_up.lab import free_port\n"
            'with mock.patch("socket.socket.bind", side_effect=OSError):\n    free_port(9000)',
            "9000 9049 --port",
        ),
    ],
}
