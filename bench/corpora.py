"""Documents of a data set for the benchmarks, and servers to put them into."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any


def read_documents(path: Path, *, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the documents of a JSON Lines file, plain or gz, with their ``id`` as ``_id``."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, most):
            document = json.loads(line)
            yield {"_id": document.pop("id"), **document}
