"""The papers' own machines, compiled: slices that nobody here owns, and how far the compiled schedule is off what was
published.

    python -m tpu_runs papers                                  # the table, from committed records; compiles nothing
    python -m tpu_runs papers --make palm-540b/decode/64@2079  # compile again, and keep the new records

Every published latency of "Efficiently Scaling Transformer Inference" (arXiv 2211.05102) on TPUs is one or two compiled
programs here; a record of each is committed, and `make test` compiles three of them again. No chip was used: seconds
are modelled from compiled schedule, all else is compiled. First file to read: `machine`, then `inference`, `rows`,
`making`, `kept`, `comparing`, `effects`, `explained`, `remaking`; of the first paper `training`, `training_rows`,
`training_tables`.
"""
