"""
One file a command: each parses its arguments, calls the library method of that name, and prints.
"""
