"""What `setup_lab.py` does, one file an idea. It runs before anything is installed: Python's own library is all it uses.

`environment` makes the folder .venv, `downloads` brings the model and another engine, `lab` starts JupyterLab, `bundle`
writes everything into one folder for a room without a network, `versions` runs the tests with older and newer packages.

Next file to read: `basics`.
"""
