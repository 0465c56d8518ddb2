"""Saved objects about near-duplicates for Kibana and OpenSearch Dashboards, as plain dicts."""

from es_simhash.dashboards.pack import build_dashboards

__all__ = ["build_dashboards"]
