"""
Saved objects about near-duplicates for Kibana and OpenSearch Dashboards.

Builders return plain dicts. Nothing here sends a request, or reads a file but those of this folder.
"""

from es_simhash.dashboards.pack import build_dashboards

__all__ = ["build_dashboards"]
