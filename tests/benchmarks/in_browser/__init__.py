"""How fast Meshwork feels, measured in a real browser: `make speed`, or `python -m tests.benchmarks.in_browser`.

    make speed                                    # all of it, in some minutes; writes docs/speed.md and docs/speed.json
    make speed ARGS="sliders planner roofline"    # one part, of some explorers; only printed
    make speed ARGS="lessons 07 11"               # of some lessons
    make speed ARGS=start

The exit status is 1 where a limit is missed (limits.py), so keep the computer quiet meanwhile. How a move is timed
stands in sliders.py. Next file to read: subjects.py.
"""
