"""Watching over one host of several: whatever happens to the others, this one ends clearly and within a time limit.

    python -m tpu_runs run … --hosts 2 --host 0 --coordinator 10.0.0.1:8476      # on the first; --host 1 on the other

Where a host dies, JAX on the others waits in a collective, or ends its process with a page of C++ words. So the run
itself is a child process of this one, which loads no JAX: it passes on what the child says, notices when JAX gives up
(after `patience` seconds without a sign of life from another host) or when nothing at all happens for `limit` seconds,
and says what that means. Records are on the disk as soon as they are made, so all that was measured is kept. A child
whose watcher is killed ends too. Next file to read: `joining`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO

from tpu_runs.records import own_file

CHILD = "MESHWORK_WATCHED"  # set in the environment of a child
LOST = 75  # a child's exit status when its companions have gone, and ours then
MARK = "\x1e"  # begins a line of the child that is for us alone
GATHERING = "gathering"  # what a child tells first
GATHER_SECONDS = 120  # how long the first host waits for the last
STUCK = 76  # our exit status where nothing happened for too long
FATAL = "distributed service detected fatal errors"  # what JAX prints last
SIGNS = ("coordination service", "Gloo", "heartbeat", "Connection closed", "Connection reset", "Broken pipe",
         "Socket closed", "UNAVAILABLE", "DEADLINE_EXCEEDED")  # fmt: skip  # that another host has gone
WAIT = 5.0  # seconds that a child has to end by itself after Ctrl-C


class Watch:
    """A child, what it last did, and what it printed besides, which is shown only if nothing else explains its end."""

    def __init__(self, words: Sequence[str]) -> None:
        command = [sys.executable, "-u", "-m", "tpu_runs", *words]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, CHILD: "1"}, start_new_session=True,  # Ctrl-C reaches it through us, once
        )  # fmt: skip
        self.doing, self.lost, self.heard = "starting", "", time.monotonic()
        self.held_back: deque[str] = deque(maxlen=200)
        self.sources = [pipe for pipe in (self.child.stdout, self.child.stderr) if pipe is not None]
        self.readers = [threading.Thread(target=self._read, args=(source,), daemon=True) for source in self.sources]
        for reader in self.readers:
            reader.start()

    def _read(self, source: IO[str]) -> None:
        """Pass on what it says, but what C++ prints."""
        for line in source:
            self.heard = time.monotonic()
            if line.startswith(MARK):
                self._told(line[1:].strip())
            elif source is self.child.stderr:
                self.held_back.append(line)
            elif "peer ranks" not in line:  # what Gloo prints where it connects
                sys.stdout.write(line)
                sys.stdout.flush()

    def _told(self, words: str) -> None:
        if words.startswith("lost "):
            self.lost = words.removeprefix("lost ")
        else:
            self.doing = words

    def end(self, limit: float) -> int | None:
        """Wait for the child; its exit status, None if it was killed because nothing happened for `limit` seconds."""
        while self.child.poll() is None:
            if time.monotonic() - self.heard > limit:
                self.child.kill()
                self.child.wait()
                return None
            time.sleep(0.1)
        return self.child.returncode

    def close(self) -> None:
        """Read what is left; a grandchild that still holds a pipe is not waited for."""
        for reader in self.readers:
            reader.join(WAIT)
        if self.child.stdin is not None:
            self.child.stdin.close()
        for reader, source in zip(self.readers, self.sources, strict=True):
            if not reader.is_alive():
                source.close()

    def why(self) -> str:
        """Why companions seem to have gone; empty where nothing says so."""
        said = self.lost or next((line for line in self.held_back if any(sign in line for sign in (FATAL, *SIGNS))), "")
        return re.sub(r"^[EFWI]\d{4} \S+\s+\d+ ", "", said).strip()[:400]

    def interrupted(self) -> None:
        """Ctrl-C: the child keeps what it has and ends; or is ended."""
        if os.name != "nt":
            self.child.send_signal(signal.SIGINT)
        try:
            self.child.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def watch(words: Sequence[str], hosts: int, host: int, patience: float, limit: float) -> int:
    """Run `python -m tpu_runs` with these words as a child; the exit status, after words on what went wrong."""
    watched, who = Watch(words), f"host {host} of {hosts}"
    try:
        status = watched.end(limit)
    except KeyboardInterrupt:
        watched.interrupted()
        return _said(130, f"{who}: stopped.", host)
    finally:
        watched.close()
    if status == 0:
        return 0
    if status is None:
        return _said(STUCK, f"{who}: nothing happened for {limit:g} s while {watched.doing}, so it ended.", host)
    if status not in (1, 2) and watched.doing.startswith(GATHERING):
        return _said(LOST, f"{who}: {watched.doing}: they did not all come within {GATHER_SECONDS} s. Give the same "
                     "command on each, and an address that all reach.", host)  # fmt: skip
    if status not in (1, 2) and (why := watched.why()):
        return _said(LOST, f"{who}: {_which(watched, hosts, host)} has gone, or cannot be reached (found while "
                     f"{watched.doing}), so this one ended; JAX waits {patience:g} s for a sign of life.\n"
                     f"  JAX says: {why}", host)  # fmt: skip
    sys.stderr.writelines(watched.held_back)  # of a refusal, or a fault of ours
    return status if status in (1, 2) else _said(1, f"{who}: ended with status {status} while {watched.doing}.", host)


def _which(watched: Watch, hosts: int, host: int) -> str:
    """The host that JAX names, if it does; of two the other."""
    found = re.search(r"/task:(\d+)", " ".join(watched.held_back))
    return f"host {found[1]}" if found else f"host {1 - host}" if hosts == 2 else "another host"


def _said(status: int, words: str, host: int) -> int:
    """Say it, and where the records are; the status."""
    place = f" in {own_file()}, unless --out named another file" if host == 0 else " by host 0"
    print(f"{words}\n  What was measured until then is kept{place}.", file=sys.stderr, flush=True)
    return status
