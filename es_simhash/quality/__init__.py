"""Match quality: measured against pairs whose similarity is known, and explained for two texts. Pure; no server."""

from es_simhash.quality.evaluate import Evaluation, Report, evaluate
from es_simhash.quality.explain import Explanation, explain
from es_simhash.quality.known_pairs import Truth, read_truth

__all__ = ["Evaluation", "Explanation", "Report", "Truth", "evaluate", "explain", "read_truth"]
