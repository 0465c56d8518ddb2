"""One file for each command: it parses its arguments, calls the library method of that name, and prints."""
