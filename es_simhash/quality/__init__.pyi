from .evaluation import Evaluation, Report, check_picture, evaluate, plot_report
from .explanation import Explanation, Feature, explain
from .health import Diagnosis
from .known_pairs import Truth, read_truth
from .read_stats import StatsOptions
from .report.figures import require_drawing
from .report.words import LANGUAGES
from .stats import Count, SourceCounts, Stats, TimeCounts, utc_text
from .tune import Tuning

__all__ = [
    "LANGUAGES",
    "Count",
    "Diagnosis",
    "Evaluation",
    "Explanation",
    "Feature",
    "Report",
    "SourceCounts",
    "Stats",
    "StatsOptions",
    "TimeCounts",
    "Truth",
    "Tuning",
    "check_picture",
    "evaluate",
    "explain",
    "plot_report",
    "read_truth",
    "require_drawing",
    "utc_text",
]
