# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Read a class
#
# At the end of each lesson a student presses **Export for your teacher**, and gets one small file,
# `meshwork-progress-<name>.json`. Collect these files in a folder, write its name below, and run the cell.
#
# You see who has passed which checks, who has not begun, which checks took most tries and helps, and what the class
# predicted. Every file is checked before it counts, and one that is left out gets a row that says why. Nothing in a
# file is run.
#
# **These are the students' own files, and anybody can edit one with a text editor.** Take them as what students tell
# you, and as a help to see where a class stands. They prove nothing: before marks come from them, let each student run
# an exercise of your choice again while you look.

# %%
from pathlib import Path

from widgets import classroom

# A folder beside this notebook. With names=["Ada", "Grace"] it says too who gave no file.
found = classroom("exports")
display(found)

# %% [markdown]
# Two files to keep or to print: a page for a browser, and a table for a spreadsheet. Both hold names, so keep them
# where names may be kept. In a terminal, `python -m widgets.learning.classroom exports --html class.html --csv
# class.csv` does the same.

# %%
if found.students:
    Path("class.html").write_text(found.page(), encoding="utf-8")
    Path("class.csv").write_text(found.csv(), encoding="utf-8-sig", newline="")
