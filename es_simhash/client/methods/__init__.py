"""
The methods of both clients, one module for each subject, such as lookup, grouping and removal. No program imports them.

A method decides nothing: it hands options and an operation to the base class. An argument whose type is a class of
options stands for its fields: ``tools/generate_clients.py`` writes them out, in ``sync_methods`` and ``async_methods``.
"""
