"""Read many damaged examples in a process that may take neither memory nor time, nor write, nor start anything.

    python -m fuzz.hunting SEED COUNT NAME…       # prints a JSON object for each fault and each parser

A fault is an error of a kind that is not documented, one without words or with Python's own ("list index out of
range"), one of more than 2,000 characters, an example that takes longer than some seconds, or memory beyond the limit.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

SECONDS = 10  # of CPU for one example, so that a busy machine finds nothing; the slowest real one takes a tenth
WAITING = 90  # seconds by the clock, for what waits and does nothing
MEMORY = 1 << 30  # above what the process holds when it begins
LONGEST = 2_000
UNCLEAR = re.compile(
    r"invalid literal for int|index out of range|'NoneType'|object is not|unhashable|not supported between|unexpected "
    r"keyword|not enough values to unpack|too many values to unpack|has no attribute|could not convert|math domain"
)
CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree", "subprocess.Popen",
           "os.system", "socket.connect", "os.exec", "os.posix_spawn", "os.fork")  # fmt: skip
LOCKS = f"meshwork-{getattr(os, 'getuid', int)()}"  # the folder by which compilers on one machine take turns


class Slow(BaseException):
    """An example takes too long."""


class Watch:
    """What a parser does beside reading: everything that writes or starts, as Python's audit events tell."""

    def __init__(self) -> None:
        self.on, self.seen, self.folder = False, [], ""
        self.thread = threading.get_ident()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple) -> None:
        if not self.on or threading.get_ident() != self.thread:  # explorers look at this machine in the background
            return
        if event == "open" and isinstance(args[0], int):  # what opened the number was heard before
            return
        writes = event == "open" and isinstance(args[1], str) and bool(set(args[1]) & set("wax+"))
        writes = writes or (event == "open" and bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))
        ours = (self.folder and self.folder in str(args)) or LOCKS in str(args)
        if (writes or event in CHANGES) and not ours:
            self.seen.append(f"{event} {str(args)[:200]}")


def limited() -> None:
    """No more memory than what is held and a little; `_alarm` ends what hangs."""
    for one in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(one, _alarm)
    if sys.platform == "linux":
        import resource

        held = int(re.search(r"VmData:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _clocks(cpu: float, waiting: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, waiting)


def _alarm(*_: Any) -> None:
    raise Slow


def tried(parser: Any, value: Any, watch: Watch) -> tuple[bool, str | None]:
    """Whether an example was refused, and what is wrong with how it was read; None where all is well."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if parser.in_folder else ""
        said = io.StringIO()
        stack.enter_context(contextlib.redirect_stdout(said))
        stack.enter_context(contextlib.redirect_stderr(said))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        watch.on, watch.seen, watch.folder = True, [], folder
        _clocks(SECONDS, WAITING)
        try:
            parser.read(value, *([pathlib.Path(folder)] if folder else []))
        except Slow:
            return True, f"took more than {SECONDS} s of CPU, or waited for {WAITING} s"
        except parser.errors as error:
            return True, _of_words(error, said.getvalue())
        except BaseException as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {str(error)[:200]} at {at.filename.rpartition('/')[2]}:{at.lineno}"
            return True, words
        finally:
            _clocks(0, 0)
            watch.on = False
        return False, f"did {watch.seen[0]}" if watch.seen else None


def _of_words(error: BaseException, printed: str) -> str | None:
    words = printed if isinstance(error, SystemExit) and isinstance(error.code, int) else str(error)
    if isinstance(error, SystemExit) and not error.code:
        return None  # --help
    if not words.strip():
        return f"{type(error).__name__} without words"
    if len(words) > LONGEST and not isinstance(error, SystemExit):
        return f"{len(words):,} characters: {words[:100]!r}"
    unclear = UNCLEAR.search(words)
    if unclear and "chat template" not in words:  # whose author Jinja speaks to
        return f"{type(error).__name__} in Python's own words ({unclear[0]}): {words[:200]!r}"
    return None


def hunted(name: str, seed: int, count: int, watch: Watch) -> Iterator[dict[str, Any]]:
    """Every kind of fault of one parser, then how many examples it was given and how many it refused."""
    from fuzz import mutating
    from fuzz.parsers import PARSERS

    parser, seen = PARSERS[name], set()
    rng = random.Random(f"{name} {seed}")
    number = refusals = 0
    for number, value in enumerate(mutating.samples(rng, parser.seeds(), count, parser.change), 1):
        refused, fault = tried(parser, value, watch)
        refusals += refused
        kind = re.sub(r"\d+|['\"].*", "", fault or "")[:60]
        if fault and kind not in seen:
            seen.add(kind)
            yield {"parser": name, "number": number, "fault": fault, "value": repr(value)[:3_000]}
    yield {"parser": name, "tried": number, "refused": refusals}


def main(names: list[str], seed: int, count: int) -> None:
    """Hunt in each; examples are made before the limits hold."""
    from fuzz.parsers import PARSERS

    for name in names:
        PARSERS[name].seeds()
    limited()
    watch = Watch()
    for name in names:
        for found in hunted(name, seed, count, watch):
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))
