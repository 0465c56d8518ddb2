"""
A command line in a process of its own, to be killed: a removal in small batches. Run by the tests of faults.
"""

from __future__ import annotations

import sys

from es_simhash.cli import main
from es_simhash.flows.removal import apply

if __name__ == "__main__":
    apply.BATCH = int(sys.argv[1])
    sys.argv[1:] = sys.argv[2:]
    sys.exit(main())
