"""`python -m mtfcore.model chat`: lines in, answers out, every fault in words, and nothing lost by whoever stops it."""

import io
import os
import signal
import subprocess
import sys

import pytest

from mtfcore.errors import LayoutError
from mtfcore.model.__main__ import main
from mtfcore.model.chat_command import HELP, Talk, moves, read

SMALL = ["--model", "untrained", "--mesh", "x:2", "--chunk", "8", "--length", "200", "--max-new-tokens", "5",
         "--prefill", "ws2d-heads"]  # fmt: skip


@pytest.fixture
def talk(monkeypatch, capsys):
    """Run the command in this process with these lines piped in; (exit status, answers, the rest)."""

    def run(*lines, more=()):
        text = "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        status = main(["chat", *SMALL, *more])
        return status, *capsys.readouterr()

    return run


def test_piped_lines_are_answered_and_commands_obeyed(talk):
    status, answers, said = talk("Hello", "", "/traffic", "/move decode=ws2d-batch", "Again", "/why", "/new", "Hello",
                                 "/quit", "never read")  # fmt: skip
    assert status == 0
    first, _, third = answers.splitlines()
    assert first == third and len(first) == 5
    assert "never read" not in said
    assert "sent by one device so far: x " in said and " a token, decoded as now: " in said
    assert "prefill ws2d-heads, decode ws2d-batch: the kept tokens moved, x " in said
    assert "[take → prefill → give → decode; 5 tokens, the conversation has " in said
    assert "decode: ws2d-batch, as asked" in said


def test_a_wrong_line_is_said_and_the_next_one_read(talk):
    status, answers, said = talk("/mvoe", "/move", "/move decode=ws2d-bath", "x" * 500, "Hello")
    assert status == 0
    assert "no command '/mvoe'; did you mean '/move'? " in said
    assert "/move : expected one or more of prefill=…, decode=…, mesh=…" in said
    assert "did you mean 'ws2d-batch'?" in said
    assert "there is room for 200: begin a new one" in said
    assert len(answers.strip()) == 5
    assert "Traceback" not in said


def test_one_answer_is_all_that_is_written(talk):
    status, answer, said = talk(more=["--once", "Hello"])
    assert status == 0 and len(answer.strip("\n")) == 5
    assert "untrained on 2 simulated devices (x:2), weights f32" in said


def test_every_word_of_the_command_is_handed_on(talk, monkeypatch):
    class Asked(Exception):
        pass

    def chat(*args, **options):
        raise Asked(args, options)

    monkeypatch.setattr("mtfcore.model.chat.Chat", chat)
    with pytest.raises(Asked) as asked:
        talk(
            more="--mesh x:4 --weights int8 --cache bf16 --slots 4 --topology v5e:2x2 --system S --decode auto".split()
        )
    args, options = asked.value.args
    assert args == ("untrained", "x:4")
    assert options == {
        "pad": "heads", "prefill": "ws2d-heads", "decode": "auto", "system": "S", "weights": "int8", "cache": "bf16",
        "slots": 4, "length": 200, "chunk": 8, "topology": "v5e:2x2", "attached": False,
    }  # fmt: skip
    words = "--temperature 0.5 --top-k 9 --top-p 0.9 --seed 3 --tokens-per-launch 2 --max-new-tokens 7".split()
    assert Talk(None, read(words)).options == {
        "temperature": 0.5, "top_k": 9, "top_p": 0.9, "seed": 3, "tokens_per_launch": 2, "max_new_tokens": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--mesh", "x:2 y:2 z:2", "--pad", "none"], "3 key/value heads with 3 query heads each do not divide over"),
        (["--mesh", "x:2 y:2 z:2", "--pad", "none"], 'pad="heads" would do it: heads 9 → 12, key/value heads 3 → 4'),
        (["--mesh", "rows:2"], "mesh 'rows:2' has rows; these partitions lie on mesh axes x, y and z"),
        (["--decode", "ws2d"], "decode is 'ws2d'; legal here: 'auto', 'ws1d-heads'"),
        (["--slots", "0"], "slots is 0; expected a whole number of at least 1"),
        (["--weights", "fp4"], "weights is 'fp4'"),
        (["--model", "nobody"], "no model 'nobody'; legal here: 'smollm2-135m'; or a .gguf file"),
        (["--top-p", "7"], "top_p"),
        (["--attached"], "no TPU or GPU is attached"),
    ],
)
def test_what_cannot_be_is_refused_in_words(talk, more, words):
    status, answers, said = talk(more=["--once", "Hello", *more])
    assert (status, answers.strip()) == (1, "")
    assert words in said and "Traceback" not in said


def test_a_model_that_was_not_fetched_says_how_to(talk, monkeypatch, tmp_path):
    monkeypatch.setenv("MESHWORK_MODELS", str(tmp_path))
    status, _, said = talk(more=["--once", "Hello", "--model", "smollm2-135m"])
    assert status == 1 and "fetch it once: python -m mtfcore.model fetch" in said


@pytest.mark.parametrize("content", ["", "GGUF", "not a model", "GGUF\3\0\0\0\177\177\177\177"])
def test_a_corrupt_file_is_refused_in_words(talk, tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_text(content * 9)
    status, _, said = talk(more=["--once", "Hello", "--model", str(path)])
    assert status == 1 and said.startswith("model.gguf") and "Traceback" not in said


def test_moves_are_read():
    assert moves(["decode=ws2d-batch", "mesh=x:4,y:2"]) == {"decode": "ws2d-batch", "mesh": "x:4 y:2"}
    for wrong in ([], ["decode"], ["decode="], ["batch=3"]):
        with pytest.raises(LayoutError, match="expected one or more of"):
            moves(wrong)
    assert set(HELP) == {"/move", "/traffic", "/why", "/new", "/quit"}


# ---- a process of its own


def process(*more):
    words = "--model untrained --mesh x:2 --prefill ws2d-heads --decode ws2d-heads --length 8000 --max-new-tokens 7000"
    command = [sys.executable, "-m", "mtfcore.model", "chat", *words.split(), *more]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    # conftest's many devices are not needed, and each costs the start of a process some time
    return subprocess.Popen(command, **pipes, env={**os.environ, "JAX_NUM_CPU_DEVICES": "2"})


def send(running, line):
    running.stdin.write(f"{line}\n".encode())
    running.stdin.flush()


def until(stream, word):
    """Read on until this was said."""
    said = b""
    while word not in said:
        byte = stream.read(1)
        assert byte, f"it ended before it said {word!r}: {said!r}"
        said += byte
    return said.decode()


def test_ctrl_c_ends_an_answer_and_a_killed_one_leaves_nothing_broken():
    with process() as running:
        send(running, "Hello")
        first = running.stdout.read(20)
        running.send_signal(signal.SIGINT)
        said = until(running.stderr, b" of 8,000]")
        assert "[stopped; what was written stays. prefill → give → decode; " in said
        send(running, "And now?")
        assert first in first + running.stdout.read(20)
        running.kill()
    again = process("--once", "Hello", "--max-new-tokens", "20")
    answer, said = again.communicate(timeout=60)
    assert again.returncode == 0 and answer.strip(b"\n") == first, said.decode()
