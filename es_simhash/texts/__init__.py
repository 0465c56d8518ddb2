"""The ways to compare two texts: what is counted, of which unit, and a caller's bound. Pure."""
