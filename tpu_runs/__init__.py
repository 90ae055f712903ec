"""Runs on real devices, and what they gave: cases as data, records that outlive a crash, published against compiled.

    python -m tpu_runs list                                   # the cases and their parameters
    python -m tpu_runs run collective --on simulated          # practise here; on a TPU or GPU: --on attached
    python -m tpu_runs compare FILE FILE                      # two runs side by side

Importing this loads no JAX. `records` and `asking` need nothing but Python itself, so that explorers can show what was
measured and ask for more. Next file to read: `records`.
"""
