"""The real model that lessons use, and another engine to compare with: both can be left out.

Next file to read: `lab`.
"""

import os
import pathlib
import platform
import subprocess
import sys

from lessons.setting_up import basics
from lessons.setting_up.basics import is_lite, pip, python_in, run_or_explain, say, works

PEER_FLAGS = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"  # a native build crashes
# at the first token on machines with AMX


def fetch_model(python: pathlib.Path) -> bool:
    """Bring the real model if it is not there; without it everything else works, so a failure is only said."""
    if is_lite():
        say("LITE=1: the real model is not fetched, and tests that need it are skipped")
        return False
    done = subprocess.run([str(python), "-m", "mtfcore.model", "fetch"], cwd=basics.ROOT, check=False,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        say(f"The real model is not here; all but what needs it will work. LITE=1 leaves it out.\n{said}\n")
    return done.returncode == 0


def build_peers() -> int:
    """The engines that nobody here wrote, in .peers: apart, so that they cannot disturb the lab's environment."""
    project = basics.project()["project"]
    folder = basics.ROOT / ".peers"
    python = python_in(folder)
    if not works(python):
        run_or_explain([sys.executable, "-m", "venv", "--clear", str(folder)], "making .peers")
    say("Building what to compare with, from source: about 5 minutes, and a C++ compiler is needed")
    if platform.machine().lower() in ("x86_64", "amd64"):
        os.environ.setdefault("CMAKE_ARGS", PEER_FLAGS)
    reader = [wanted for wanted in project["dependencies"] if wanted.startswith("gguf==")]
    wanted = [*project["optional-dependencies"]["peers"], *reader]
    run_or_explain([*pip(python, "install"), "-c", "constraints.txt", *wanted], "building .peers")
    say(f"Built. To make the stored expectations again: {python} -m tests.model.files.peer")
    return 0
