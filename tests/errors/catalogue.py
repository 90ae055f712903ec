"""Every kind of message, by what somebody was doing: the wrong calls of which docs/errors.md shows the words.

Next file to read: `rare`.
"""

from __future__ import annotations

from collections.abc import Callable

from errors.entry import Wrong
from errors.rare import RARE

F = """
@mtf.function
def f(x: "batch io", w: "io hidden"):
    return {}

mtf.plan(f, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")"""


def _in_f(line: str) -> str:
    return F.strip("\n").format(line)


def _plan(words: str) -> str:
    return f"""@mtf.function
def f(x: "batch io", w: "io hidden"):
    return mtf.einsum(x, w, out="batch hidden")

{words}"""


def _planned(line: str) -> str:
    return _plan(f'p = mtf.plan(f, "rows:4", sizes="batch:64 io:8 hidden:8")\n{line}')


def _after(imported: str) -> Callable[[str], str]:
    return lambda line: f"{imported}\n{line}"


_hlo = _after("from mtfcore.counting import count_hlo_text")
_request = _after("from tpu_runs.serve.limits import read_request")
_state = _after("from widgets.state import read_state")
_case = _after("from tpu_runs.cases import CASES, check")
_constants = _after("from mtfcore.costs.pricing.constants import Constants\nkept = Constants('v4', hbm_share=0.9)")
_engine = _after("small = make.small(layers=1)\nengine = mtf.model.Engine(small, make.random_params(small), 'x:2')")
_small = _after("small = make.small(layers=1)\nmake.write_folder(files / 'm', small, make.random_params(small))")
WRITTEN = {
    "A text that does not parse": [
        Wrong('mtf.Mesh("rows:0")', "rows size", caret=True),
        Wrong('mtf.Mesh("rows=4")', "rows=4", caret=True),
        Wrong('mtf.Mesh("rows:4 3x:2")', "3x", caret=True),
        Wrong('mtf.Mesh("rows:" + "9" * 30)', "rows 30", caret=True),
        Wrong('mtf.Layout("batch:(rows cols")', "(", caret=True),
        Wrong('mtf.Layout("batch:rows) io")', ")", caret=True),
        Wrong('mtf.Layout("batch: io:cols")', "batch", caret=True),
        Wrong('mtf.Sharding("batch:64", "batch:(rows rows)")', "rows batch", caret=True),
        Wrong('mtf.Sharding("B L partialsum")', "partialsum", caret=True),
        Wrong('mtf.Sharding("B:8 (partialsum-x)")', "partialsum", caret=True),
        Wrong('mtf.Sharding("B:8 rows(x)")', "rows(x)", caret=True),
        Wrong('mtf.Sharding.from_paper("BLE_xyz stop")', "capitals", caret=True),
        Wrong("mtf.Layout(64)", "64"),
        Wrong('mtf.Mesh("rows:four")', "rows"),
    ],
    "Meshes, layouts, shardings": [
        Wrong('mtf.Mesh("xyz:8")', "xyz"),
        Wrong('mtf.Mesh("rows:4 rows:2")', "rows"),
        Wrong('mtf.Mesh("größe:2")', "größe"),
        Wrong('mtf.Mesh("rows:4")["cols"]', "cols rows"),
        Wrong('mtf.Mesh("rows:4").coordinates(4)', "4 rows:4"),
        Wrong('mtf.Layout("batch:rows batch:cols")', "batch"),
        Wrong('mtf.Layout("batch:rows").sharding("batch:64 io:512", "x:4")', "rows x"),
        Wrong('mtf.Layout("batch:rows").sharding("batch:64", "x:4", strict=True)', "rows x"),
        Wrong('mtf.Sharding("batch:10 io:512", "batch:rows io:rows").local_shape("rows:4")', "rows batch io"),
        Wrong('mtf.Sharding("batch:10", "batch:rows").local_shape("rows:4")', "batch 10 rows:4 8 12"),
        Wrong('mtf.Sharding("batch:64", "batch:cols").local_shape("rows:4")', "cols rows"),
        Wrong('mtf.Sharding("batch:64", "btch:rows")', "btch"),
        Wrong('mtf.Sharding("batch:64", "batch:32")', "batch 64 32"),
        Wrong('mtf.Sharding("batch", "batch:rows").local_shape("rows:4")', "batch"),
        Wrong('mtf.Sharding("batch:64").bytes_per_device("rows:4", "f33")', "f33 f32"),
        Wrong('mtf.Sharding("rows:4").same_sets("rows")', "str"),
    ],
    "Operations of a named function": [
        Wrong(_in_f('mtf.einsum(x, w, out="batch hiden")'), "hiden x w"),
        Wrong(_in_f('mtf.einsum(x, w, out="batch:cols hidden:cols")'), "cols batch hidden"),
        Wrong(_in_f('mtf.einsum(x, w, out="batch:rows hidden:z")'), "z rows cols"),
        Wrong(_in_f("mtf.add(x, w)"), "x w batch io hidden"),
        Wrong(_in_f("mtf.add(x)"), "add 2 1"),
        Wrong(_in_f("x @ w"), "@ einsum"),
        Wrong(_in_f("x[0]"), "[] slice"),
        Wrong(_in_f("x if x else w"), "where"),
        Wrong(_in_f('mtf.sum(x, "hidden")'), "hidden batch io"),
        Wrong(_in_f('mtf.sum(mtf.greater(x, 0), "io")'), "bool i32"),
        Wrong(_in_f('mtf.softmax(mtf.cast(x, "i32"), "io")'), "i32 f32"),
        Wrong(_in_f('mtf.top_k(x, "io", 600)'), "600 512"),
        Wrong(_in_f('mtf.reshape(x, "batch:64 a:4 b:64")'), "32768 16384"),
        Wrong(_in_f('mtf.split(x, "io", "a:3 b")'), "512 3"),
        Wrong(_in_f('mtf.split(x, "io", "a:3 b:100")'), "512 300"),
        Wrong(_in_f('mtf.slice(x, "io", 500, 600)'), "512 500 600"),
        Wrong(_in_f('mtf.slice(x, "io", 0.5, 600)'), "0.5"),
        Wrong(_in_f('mtf.pad(x, "io", 500)'), "512 500"),
        Wrong(_in_f('mtf.rename(x, "io", "batch")'), "batch"),
        Wrong(_in_f('mtf.concat([x, w], "io")'), "x w io"),
        Wrong(_in_f('mtf.concat(5, "io")'), "concat"),
        Wrong(_in_f('mtf.cast(x, "bf61")'), "bf61 bf16"),
        Wrong(_in_f('mtf.repeat(lambda c: mtf.sum(c, "io"), 3, (), x)'), "batch"),
        Wrong(_in_f("mtf.repeat(lambda c: c, 0, (), x)"), "0 1"),
        Wrong(_in_f('mtf.relu("x")'), "relu"),
        Wrong(_in_f("x + 'a'"), "str"),
        Wrong(_in_f("None"), "NoneType return"),
        Wrong(_in_f("{'a': x, 'b': 5}"), "int 5"),
    ],
    "Planning and running": [
        Wrong(_plan('mtf.plan(f, "rows:4 cols:2", sizes="batch:64 io:512")'), "hidden batch io"),
        Wrong(_plan('mtf.plan(f, "rows:4", sizes="batch:64 io:512 hidden:8", place={"y": "batch"})'), "y x w"),
        Wrong(_plan('mtf.plan(f, "rows:4", sizes="batch:64 io:512 hidden:8", dtype="f99")'), "f99"),
        Wrong(
            _plan('mtf.plan(f, "rows:4", "rows:batch", sizes="batch:64 io:512 hidden:8", strict=True)'), "rows batch"
        ),
        Wrong("mtf.function(5)", "int"),
        Wrong('@mtf.function\ndef f(x):\n    return x\n\nmtf.plan(f, "rows:2")', "x"),
        Wrong(_planned("mtf.simulate(p)(np.ones((64, 8)))"), "w"),
        Wrong(_planned("mtf.simulate(p)(np.ones((64, 9)), np.ones((8, 8)))"), "x 64 9"),
        Wrong(_planned('mtf.simulate(p)("abc", np.ones((8, 8)))'), "x str"),
        Wrong(_plan('mtf.simulate(mtf.plan(f, "x:16 y:16", sizes="batch:64 io:8 hidden:8"))'), "256 64"),
        Wrong(_planned("mtf.simulate(p).values(0, 0)"), "run"),
        Wrong("mtf.devices(0)", "0 64"),
        Wrong("mtf.devices(10_000)", "10000"),
    ],
    "Chips and slices": [
        Wrong('mtf.chip("v44")', "v44 v4"),
        Wrong('mtf.topology("v4:3x5x7")', "v4:3x5x7 v4:4x4x8"),
        Wrong('mtf.topology("v9:4x4")', "v9"),
        Wrong('mtf.topology("v5p-8")', "v5p-8"),
        Wrong('mtf.topology("tpu7x:2x2x1")', "tpu7x v7x"),
        Wrong('from mtfcore.topology_answers import slices\nslices("v4", 100_000)', "v4 100000"),
        Wrong('mtf.chip("v2").peak_flops_per_device("f64")', "f64"),
        Wrong('mtf.add_chip("my chip", source="", peak_bf16="fast")', "source"),
        Wrong('mtf.add_chip("mine", like="v4x", source="a sheet")', "v4x"),
    ],
    "Prices and estimates": [
        Wrong(_planned('mtf.price(p, "v4:1x1x1")'), "4 1"),
        Wrong(_planned('mtf.price(p, "v4:2x2x1", model="best")'), "best"),
        Wrong('mtf.costs.inference("palm-541b", "v4:4x4x4", batch=64)', "palm-541b palm-540b"),
        Wrong('mtf.costs.inference("palm-540b", "v4:4x4x4", batch=0)', "batch 0"),
        Wrong('mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, weights="int9")', "int9 int8"),
        Wrong('mtf.costs.inference("palm-540b", "v4:4x4x4", batch=64, ffn="ws3d")', "ws3d ws2d"),
        Wrong('mtf.costs.inference("palm-540b", "v4:4x4x4", batch=[1, 2], input_tokens=[1, 2, 3])', "broadcast"),
        Wrong('mtf.costs.inference("palm-540b", "v4:4x4x4", batch=63, ffn="wg_xyz")', "63 64"),
        Wrong(_plan('mtf.search_layout(f, "v2:2x2", sizes="batch:64 io:512")'), "hidden"),
        Wrong('from mtfcore.costs.pricing.constants import Constants\nConstants.from_json("[]")', "constants"),
    ],
    "Compiling, counting, measuring": [
        Wrong(_planned('mtf.compile(p, "v4:1x1x1")'), "4 1"),
        Wrong(_planned('mtf.compile(p, "h100:4")'), "h100"),
        Wrong('mtf.compile("step", "v4:2x2x1")', "str"),
        Wrong("mtf.count(5)", "int"),
        Wrong(_hlo('count_hlo_text("hello")'), "hello HloModule"),
        Wrong(_hlo('count_hlo_text("HloModule m\\n%a (x: f32[]) -> f32[] {")'), "%a"),
        Wrong(_hlo('count_hlo_text("HloModule m\\nnonsense")'), "nonsense"),
        Wrong(_hlo('count_hlo_text("HloModule m\\n%a {\\n  what is this\\n}")'), "what is this"),
        Wrong(_hlo('count_hlo_text("HloModule m\\n%a {\\n  %b = f32[2] dot(%x\\n}")'), "%x"),
        Wrong(_hlo('count_hlo_text("HloModule m\\n%a {\\n ROOT %b = f32[2] iota()\\n}\\n%a {\\n")'), "%a", ends=False),
        Wrong(_hlo('count_hlo_text("HloModule m\\nENTRY %a {\\n ROOT %b = f32[2] conditional()\\n}")'), "%b branch"),
        Wrong(
            _hlo('count_hlo_text("HloModule m, num_partitions=99999999\\nENTRY %a {\\n %b = f32[2] all-reduce()\\n}")'),
            "99999999",
        ),
        Wrong(_hlo('count_hlo_text("HloModule m\\nENTRY %a {\\n ROOT %b = f32[2] dot()\\n}")'), "%b 1 0"),
        Wrong('from mtfcore.counting import count_stablehlo\ncount_stablehlo("hello")', "hello"),
        Wrong('from mtfcore.compiling.timeline import Timeline\nTimeline.from_json({"timeline": 2})', "timeline"),
    ],
}
MODELS = {
    "Models, their files, conversations": [
        Wrong('mtf.model.config("palm-9b")', "palm-9b palm-8b"),
        Wrong('mtf.model.config("palm-8b", heads=0)', "heads 0"),
        Wrong('mtf.model.config("palm-540b", heads=61 * 10**30)', "heads 1e+16", ends=False),
        Wrong('mtf.model.config(files / "config.json")', "config.json"),
        Wrong('(files / "config.json").write_text(\'{"a" 1}\')\nmtf.model.config(files)', "config.json"),
        Wrong(
            '(files / "config.json").write_text(\'{"model_type": "gemma"}\')\nmtf.model.config(files)', "gemma llama"
        ),
        Wrong('mtf.model.load("smollm2-136m")', "smollm2-136m smollm2-135m"),
        Wrong("mtf.model.load(5)", "5"),
        Wrong("mtf.model.load(files)", "config.json"),
        Wrong('(files / "a.gguf").write_bytes(b"PK" + b" " * 90)\nmtf.model.load(files / "a.gguf")', "a.gguf zip"),
        Wrong('(files / "a.gguf").write_bytes(b"GGUF")\nmtf.model.load(files / "a.gguf")', "a.gguf 4 bytes"),
        Wrong('(files / "a.bin").write_bytes(b"\\x80" * 90)\nmtf.model.load(files / "a.bin")', "a.bin"),
        Wrong(_small('(files / "m" / "model.safetensors").unlink()\nmtf.model.load(files / "m")'), "model.safetensors"),
        Wrong(
            _small('(files / "m" / "tokenizer.json").write_text("{}")\nmtf.model.load(files / "m")'),
            "tokenizer.json",
            ends=False,
        ),
        Wrong('mtf.model.plan_phase("palm-8b", "decod", "x:2 y:2 z:2", batch=64)', "decod decode"),
        Wrong(
            'mtf.model.plan_phase("palm-8b", "decode", "x:2 y:2 z:2", batch=63, cached_tokens=8, ffn="wg_xyz")', "63"
        ),
        Wrong('mtf.model.Engine("tiny-grouped", {}, "x:2")', "tiny-grouped"),
    ],
    "Explorers": [
        Wrong('from widgets import slices\nsentence = slices(mesh="rows:0").sentence', "rows 0"),
        Wrong('from widgets import slices\nsentence = slices(layout="batch:cols hidden:cols").sentence', "cols batch"),
        Wrong('from widgets import layouts\nsentence = layouts(chip="v99").sentence', "v99"),
        Wrong('from widgets import planner\nsentence = planner(model="palm-9b").sentence', "palm-9b palm-8b"),
        Wrong('from widgets import planner\nsentence = planner(topology="v4:3x5x7").sentence', "v4:3x5x7"),
        Wrong('from widgets import frontier\nsentence = frontier(chips="v99").sentence', "v99"),
        Wrong('from widgets import roofline\nsentence = roofline(topology="v4:3").sentence', "v4:3"),
        Wrong("from widgets import feedforward\nsentence = feedforward(x=3).sentence", "3"),
        Wrong('from widgets import attention\nsentence = attention(model="palm-9b").sentence', "palm-9b"),
        Wrong('from widgets import traffic\nsentence = traffic(mesh="rows:4 rows:2").sentence', "rows"),
        Wrong('from widgets import feedforward\nfeedforward(mesh="x:3")', "mesh"),
        Wrong(_state('read_state(\'{"mesh" 5}\', {"mesh": "rows:4"})'), "JSON", caret=True),
        Wrong(_state('read_state("[]", {"mesh": "rows:4"})'), "list"),
        Wrong(_state('read_state(\'{"mesh": 5}\', {"mesh": "rows:4"})'), "mesh 5"),
        Wrong(_state('read_state("x" * 30_000, {"mesh": "rows:4"})'), "30000"),
    ],
    "Runs, records, a class": [
        Wrong(_case('check(CASES["product"], {"m": 4096, "kk": 512, "dtype": "bf61"})'), "kk bf61 bf16"),
        Wrong(_case('check(CASES["product"], {"m": 10**9})'), "m"),
        Wrong('from tpu_runs.cases import case\ncase("produkt")', "produkt product"),
        Wrong(_case('check(CASES["collective"], {"mesh": "x:5000"})'), "5,000"),
        Wrong('from tpu_runs.records import Record\nRecord(case="")', "case"),
        Wrong(
            'from tpu_runs.asking import the_class\nthe_class("http://127.0.0.1:8899")', "MESHWORK_CLASS address token"
        ),
        Wrong('from tpu_runs.asking import the_class\nthe_class("http://127.0.0.1:1 token").status()', "127.0.0.1:1"),
        Wrong('from tpu_runs.asking import ask\nask("product", place=None)', "MESHWORK_CLASS"),
        Wrong(_request('read_request("text/plain", b"{}")'), "text/plain application/json"),
        Wrong(_request('read_request("application/json", b"[]")'), "list"),
        Wrong(_request('read_request("application/json", b\'{"a" 1}\')'), "JSON"),
        Wrong(_request('read_request("application/json", b\'{"case": 5}\')'), "case"),
        Wrong(_request('read_request("application/json", b"\\x80")'), "pickle"),
    ],
    "Command lines and the set-up": [
        Wrong('from tpu_runs.__main__ import main\nmain(["runn"])', "runn run"),
        Wrong('from tpu_runs.__main__ import main\nmain(["run"])', "product"),
        Wrong('from tpu_runs.__main__ import main\nmain(["run", "product", "m"])', "'m' m=1024"),
        Wrong('from tpu_runs.__main__ import main\nmain(["compare", "none.jsonl"])', "none.jsonl"),
        Wrong('from mtfcore.model.__main__ import main\nmain(["talk"])', "talk"),
        Wrong('from mtfcore.model.chat_command import moves\nmoves(["encode=ws1d"])', "encode"),
        Wrong('from lessons.setting_up.lab import lab_options\nlab_options(["--prot", "9000"])', "--prot"),
        Wrong(
            'from mtfcore.memory_limit import limit_bytes\nlimit_bytes({"MESHWORK_MEMORY_GIB": "much"})',
            "MESHWORK_MEMORY_GIB much",
        ),
    ],
}
MORE = {
    "Rarer operations": [
        Wrong(_in_f('mtf.windows(x, "io", 0, "tap")'), "0"),
        Wrong(_in_f('mtf.windows(x, "io", 3, "tap", padding="sme")'), "sme same"),
        Wrong(_in_f('mtf.windows(x, "io", 3, "tap", padding=(5, 0))'), "(5 2"),
        Wrong(_in_f('mtf.overlap_add(x, "io", "batch", padding=(300, 300))'), "300"),
        Wrong(
            'mtf.schedules.schedule("all_reduce", (4,), "ring", n_bytes=64, pairs=[(0, 1)])', "all_reduce", ends=False
        ),
        Wrong(_planned("r = mtf.simulate(p)\nr(np.ones((64, 8)), np.ones((8, 8)))\nr.values(99, 0)"), "99 0"),
    ],
    "Engines and templates": [
        Wrong(
            'from mtfcore.costs.first_paper.memory import optimizer_bytes\noptimizer_bytes("adm", {}, {})', "adm adam"
        ),
        Wrong('from mtfcore.reference.arithmetic import evaluate\nevaluate("2 + x")', "x", ends=False),
        Wrong('from mtfcore.reference.arithmetic import evaluate\nevaluate("2 +")', "2 +", ends=False),
        Wrong(
            _constants('text = kept.to_json().replace("0.9", "-1")\nConstants.from_json(text)'), "shares", ends=False
        ),
        Wrong(_constants('text = kept.to_json().replace("v4", "v99")\nConstants.from_json(text)'), "v99"),
        Wrong(_engine("mtf.compile(engine, 'v4:2x1x1')"), "programs"),
    ],
    "Explorers, rarer": [
        Wrong('from widgets import planner\nsentence = planner(mode="find", chips="").sentence', "chip"),
        Wrong('from widgets import planner\nsentence = planner(model="mtf-translate-0.15b").sentence', "encoder"),
        Wrong(
            'from widgets import slices\nmany = "; ".join(f"t{n}: io" for n in range(40))\n'
            "sentence = slices(tensors=many).sentence",
            "40",
        ),
    ],
    "Setting up": [
        Wrong(
            'from lessons.setting_up import bundle\n(files / "a").touch()\nbundle.main(["--to", str(files)])',
            "files --to",
        ),
        Wrong('from tpu_runs.cases import case\ncase("collective").params["axes"].read(5)', "5 axes"),
    ],
}
CATALOGUE: dict[str, list[Wrong]] = {**WRITTEN, **MODELS, **MORE, **RARE}
