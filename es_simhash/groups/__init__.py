"""Writing and reading groups: the rules of grouping, reconcile, groups and pairs."""
