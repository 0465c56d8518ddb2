"""
The ways in which two texts can be compared: what is counted, of which unit, and the bound that a caller gives. Pure.
"""
