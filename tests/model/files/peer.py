"""What an engine that nobody here wrote says of the same file: made once, stored, and compared with by the tests.

    make peers                                               # builds llama-cpp-python into .peers
    .peers/bin/python -m tests.model.files.peer              # writes smollm2_expected.json beside this

For each prompt: its tokens, at each position the ten largest logits, and a greedy continuation with the distance
between the two largest at each step. The peer multiplies in 8 bits what is stored in 4, so its logits are near the
exact ones, not equal. Therefore they are written twice: of the file as it is (`quick`), and of a copy whose numbers
were widened to f32 first, where the peer's products are plain ones and must agree closely (`exact`). And tokens of
texts of all kinds. Runs with the peer's Python: llama_cpp, numpy and gguf, nothing of this project.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import tempfile
from importlib.metadata import version

import numpy as np
from llama_cpp import GGML_TYPE_F32, Llama

HERE = pathlib.Path(__file__).parent
MODEL = HERE.parents[2] / ".lab" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
COMMAND = "python -m tests.model.files.peer"
TOP, STEPS, DIGITS = 10, 16, 3
PROMPTS = (
    "<|im_start|>user\nWhere do tides come from?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nName three primes.<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>system\nAnswer in French.<|im_end|>\n<|im_start|>user\nGood morning!<|im_end|>\n"
    "<|im_start|>assistant\n",
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "1 + 1 = 2, 2 + 2 = 4, 3 + 3 =",
    "Once upon a time there was a small robot who",
    "To be, or not to be, that is",
    "Water boils at 100 degrees Celsius and freezes at",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
    "<|im_start|>user\nWhat are you?<|im_end|>\n<|im_start|>assistant\n",
)
TEXTS = (
    "", " ", "  ", "\n", "\n\n\n", " \n \t x", "a", " a", "Hello, world!", "hello   world", "tab\tand\rreturn\r\n",
    "0", "1984", "3.14159", "1,000,000", "x1y2z3", "½ ² ³ Ⅷ ٣ ४", "It's we'll I'd they've you're 'tis",
    "IT'S WE'LL", "naïve café Ångström", "e\u0301 vs é", "日本語のテキスト", "中文，标点。", "한국어 텍스트",
    "Привет, мир!", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "ไทยไม่มีวรรค", "🎉👩‍👩‍👧‍👦🏳️‍🌈", "a🎉b",
    "\u200b\u00a0\u3000x\ufeff", "\x00\x01\x7f",
    "def f(x):\n    return x**2 + 1  # square\n", "for (int i=0;i<10;++i){a[i]+=1;}", "<html>&amp;</html>",
    "https://example.org/a?b=c&d=%20", "$\\frac{1}{2}$", "______----====####", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ALLCAPS CamelCase snake_case kebab-case", "<|im_start|>user\nHi<|im_end|>\n", "<|im_end|>", "<|im_end",
    "<|endoftext|>x", " <|im_start|> ", "<|im_start|><|im_start|>", "<repo_name>x<file_sep>", "...!?!?",
    "“quotes” – dash…",
)  # fmt: skip


def main() -> None:
    """Ask the peer everything and write it down."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", type=pathlib.Path, default=MODEL)
    path = parser.parse_args().model
    said = {
        "made_by": COMMAND, "peer": f"llama-cpp-python {version('llama-cpp-python')}",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "top": TOP, **asked(path),
    }  # fmt: skip
    lines = ",\n".join(f'"{key}": {lined(value)}' for key, value in said.items())
    (HERE / "smollm2_expected.json").write_text("{" + lines + "}\n", encoding="utf-8")


def lined(value: object) -> str:
    """JSON with a line for each item of a list."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=True) for item in value) + "]"
    return json.dumps(value)


def asked(path: pathlib.Path) -> dict[str, object]:
    """Prompts with logits and continuations, and texts with tokens."""
    quick = opened(path)
    prompts = [{"text": text, "tokens": tokens(quick, text)} for text in PROMPTS]
    for prompt in prompts:
        prompt["greedy"], prompt["margins"] = greedy(quick, prompt["tokens"])
        prompt["quick"] = largest(quick, prompt["tokens"] + prompt["greedy"][:-1])
    texts = [[text, tokens(quick, text), tokens(quick, text, special=False)] for text in TEXTS]
    with tempfile.TemporaryDirectory() as folder:
        exact = opened(widened(path, pathlib.Path(folder) / "f32.gguf"), type_k=GGML_TYPE_F32, type_v=GGML_TYPE_F32)
        for prompt in prompts:
            prompt["exact"] = largest(exact, prompt["tokens"] + prompt["greedy"][:-1])
    return {"prompts": prompts, "texts": texts}


def opened(path: pathlib.Path, **options: object) -> Llama:
    return Llama(str(path), n_ctx=256, n_threads=2, logits_all=True, verbose=False, **options)


def tokens(peer: Llama, text: str, special: bool = True) -> list[int]:
    return peer.tokenize(text.encode(), add_bos=False, special=special)


def greedy(peer: Llama, ids: list[int]) -> tuple[list[int], list[float]]:
    """Tokens, and how far the largest logit was above the second at each."""
    peer.reset()
    peer.eval(ids)
    found, margins = [], []
    for _ in range(STEPS):
        logits = np.array(peer.scores[peer.n_tokens - 1])
        second, first = np.sort(logits)[-2:]
        found.append(int(logits.argmax()))
        margins.append(round(float(first - second), DIGITS))
        peer.eval(found[-1:])
    return found, margins


def largest(peer: Llama, ids: list[int]) -> list[list[list[float]]]:
    """At each position, the largest logits: [tokens, logits]."""
    peer.reset()
    peer.eval(ids)
    rows = np.array(peer.scores[: len(ids)])
    order = np.argsort(-rows, axis=1)[:, :TOP]
    return [[order[n].tolist(), [round(float(x), DIGITS) for x in rows[n][order[n]]]] for n in range(len(ids))]


def widened(path: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """The same file with every tensor in f32: the same numbers, written out."""
    from gguf import GGUFReader, GGUFValueType, GGUFWriter, dequantize

    reader = GGUFReader(path)
    writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in ("general.architecture", "general.file_type"):
            sub = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), field.types[0], sub)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


if __name__ == "__main__":
    main()
