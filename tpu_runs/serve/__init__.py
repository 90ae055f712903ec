"""One chip, many notebooks: the process that owns a class's TPU or GPU and lets everybody ask it for measurements.

    make class                          # or: python -m tpu_runs.serve --on simulated
    MESHWORK_CLASS="http://127.0.0.1:8899 k3v…"     # the line it prints, for every notebook of the class

Only one process can hold a TPU, so notebooks do not run on it: they ask. A request names a case of `tpu_runs` and its
parameters, as JSON; both are checked, and sized by the memory model, before anything happens. Nobody can send code.

    notebooks ──JSON, token──▶ app ──checked JSON──▶ desk ──▶ engine (Dask's scheduler) ──▶ worker ──▶ the chip
                               tornado                │ turns, merging, records             the only process with JAX

Everything right of `app` stays on this machine: the scheduler and its worker talk over loopback, encrypted, with keys
made for this run and kept in memory, since what they send each other is pickled, and must be theirs alone; of what a
client sent, only JSON text that passed every check travels there. Next file to read: `limits`; then `desk`.
"""
