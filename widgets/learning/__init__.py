"""What every lesson uses: predictions, checks with help, and the progress file behind both.

    from widgets import check, predict

Read first: `exercises.py` (what an exercise is), then `check.py`, `predict.py`, `progress.py`.
"""

from .check import Check, Report, check
from .predict import Predict, Prediction, predict
from .progress import Progress

__all__ = ["Check", "Predict", "Prediction", "Progress", "Report", "check", "predict"]
