from .explanation import Explanation, explain
from .health import Diagnosis
from .stats import Stats
from .tune import Tuning

__all__ = [
    "Diagnosis",
    "Explanation",
    "Stats",
    "Tuning",
    "explain",
]
