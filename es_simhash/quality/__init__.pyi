from .explanation import Explanation, explain
from .health import Diagnosis
from .read_stats import StatsOptions
from .report.report_page import LANGUAGES
from .stats import Count, SourceCounts, Stats, TimeCounts, utc_text
from .tune import Tuning

__all__ = [
    "LANGUAGES",
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
