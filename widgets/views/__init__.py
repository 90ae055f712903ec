"""Our anywidgets: a row of controls, a status line with folded details, slices, and plots.

Each takes plain JSON and draws it; none knows what the numbers mean. Next file to read: `slices_view`.
"""
