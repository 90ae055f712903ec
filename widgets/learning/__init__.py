"""What every lesson uses: predictions, checks with help, and the progress file behind both.

    from widgets import check, predict

Read first: `exercises.py` (what an exercise is), then `checking.py`, `predictions.py`, `progress.py`.
"""

from .checking import Check, Report, check
from .predictions import Predict, Prediction, predict
from .progress import Progress

__all__ = ["Check", "Predict", "Prediction", "Progress", "Report", "check", "predict"]
