"""`python -m tpu_runs.serve`: own this machine's chip for a class. Next file to read: `owner`."""

import sys

from tpu_runs.serve.owner import options, run

if __name__ == "__main__":  # the worker's process imports this file too
    sys.exit(run(options(sys.argv[1:])))
