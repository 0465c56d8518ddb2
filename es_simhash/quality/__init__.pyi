from .explanation import Explanation, explain
from .health import Diagnosis
from .read_stats import StatsOptions
from .stats import Count, SourceCounts, Stats, TimeCounts, utc_text
from .tune import Tuning

__all__ = [
    "Count",
    "Diagnosis",
    "Explanation",
    "SourceCounts",
    "Stats",
    "StatsOptions",
    "TimeCounts",
    "Tuning",
    "explain",
    "utc_text",
]
