"""What `setup_lab.py` does, one file an idea. It runs before anything is installed, with Python's own library alone.

`environment` makes the folder .venv, `downloads` brings the model and another engine, `lab` starts JupyterLab, `bundle`
writes everything into one folder for a room without a network, `versions` runs the tests with older and newer packages,
`update` takes the newest lessons.

Next file to read: `basics`.
"""
