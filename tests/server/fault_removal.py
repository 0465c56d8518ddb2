"""
A command line in a process of its own, to be killed: a removal or a restore in small batches. Run by tests of faults.
"""

from __future__ import annotations

import sys

from es_simhash.cli import main
from es_simhash.flows.removal import apply, restore

if __name__ == "__main__":
    apply.BATCH = restore.BATCH = int(sys.argv[1])
    sys.argv[1:] = sys.argv[2:]
    sys.exit(main())
