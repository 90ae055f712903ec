"""`python -m tpu_runs calibrate`: the cost model's few constants, fitted to measured products and collectives.

    python -m tpu_runs run product --sweep chip               # measure; on a slice also: run collective --sweep slice
    python -m tpu_runs calibrate mine --out my-h200.json      # fit; with confidence, and what is still missing
    python -m tpu_runs compare mine --model my-h200.json      # predictions that name these constants

Records of simulated devices are left out: this computer's time is no chip's. The fit itself is
`mtfcore.measuring.calibrating`. Next file to read: `tpu_runs/README.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mtfcore.measuring.calibrating import calibrate
from tpu_runs.against import program_of
from tpu_runs.compare import load


def main(words: Sequence[str] | None = None) -> int:
    """Fit, print, and keep the constants where `--out` says."""
    parser = argparse.ArgumentParser(prog="python -m tpu_runs calibrate", description="Fit constants to records.")
    parser.add_argument("sources", nargs="*", default=["mine"], help="files, folders, ids, 'mine' or 'committed'")
    parser.add_argument("--chip", help="which chip, where records are of several: v4, v5e, h200, …")
    parser.add_argument("--out", type=Path, help="a file for the constants, for compare --model and mtf.price")
    asked = parser.parse_args(words)
    records = [record for source in asked.sources for record in load(source)]
    found = calibrate(records, program_of, chip=asked.chip)
    print(found)
    if asked.out:
        asked.out.write_text(found.constants.to_json() + "\n", encoding="utf-8")
        print(f"kept in {asked.out}")
    return 0
