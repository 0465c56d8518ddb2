"""
A plan of removal for people: what would go and what stays beside it, as one HTML page or as text. Nothing is sent.
"""
