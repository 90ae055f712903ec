"""`python -m tpu_runs.serve`: own this machine's chip for a class. Next file to read: `owner`."""

import sys

NEEDED = ("dask", "distributed", "psutil", "tornado")

try:
    from tpu_runs.serve.owner import options, run
except ModuleNotFoundError as fault:
    if fault.name not in NEEDED:
        raise
    sys.exit(f"{fault.name} is not installed: `make class` brings it, or: pip install distributed tornado")

if __name__ == "__main__":  # the worker's process imports this file too
    sys.exit(run(options(sys.argv[1:])))
