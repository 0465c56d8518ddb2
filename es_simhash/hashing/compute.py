"""
Text to fingerprint: the public functions, for one text or many, and for every scheme.

A single text is a batch of one. What loads numpy or jieba is imported on first use. Nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_simhash.arguments import check_items
from es_simhash.errors import WrongTypeError, shorten
from es_simhash.hashing.registry import DEFAULT_SCHEME, get_scheme
from es_simhash.hashing.scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray


def fingerprint(text: str, *, scheme: str | Scheme = DEFAULT_SCHEME) -> int | None:
    """
    Return the 64-bit fingerprint of *text*, or ``None`` if it has no features.

    A text of spaces, punctuation or emoji only has no features. It gets no fingerprint, and so matches nothing: with
    one, all such texts would be near-duplicates of each other. Lone surrogates and NUL are ignored like
    punctuation. For many texts :func:`fingerprints` is several times as fast.

    Args:
        text:
            Any text, of any length and language.
        scheme:
            Name, id or :class:`Scheme`; see :func:`get_scheme`.

    Raises:
        TypeError: If *text* is not a string.
        SchemeError: If the scheme is unknown, or a file or library that it needs is missing or differs.

    Examples:
        >>> from es_simhash.hashing import hamming_distance
        >>> a = fingerprint("The quick brown fox jumps over the lazy dog.")
        >>> b = fingerprint("the quick, brown fox jumps over the lazy dog")
        >>> hamming_distance(a, b)
        0
        >>> fingerprint(" ... ") is None
        True
    """
    return fingerprints([text], scheme=scheme)[0]


def fingerprints(
    texts: Iterable[str], *, scheme: str | Scheme = DEFAULT_SCHEME, workers: int | None = None
) -> list[int | None]:
    """
    Return the fingerprint of each of *texts*, in order; ``None`` for a text without features.

    The bits are those of :func:`fingerprint`, whatever else is in the batch.

    Args:
        texts:
            Texts; a single string is refused. All are kept in memory; the work is done in small parts.
        scheme:
            Name, id or :class:`Scheme`.
        workers:
            Number of processes to share the work between; ``None`` uses this one alone. Starting them takes
            a second or two, so they pay from some 4 million characters on. A script that uses them begins its work
            below ``if __name__ == "__main__":``, because each of them imports the script.

    Raises:
        TypeError: If *texts* is a string, one of them is not a string, or *workers* is not an integer.
        InvalidInputError: If *workers* is less than 1.
        SchemeError: As :func:`fingerprint`.
        WorkerError: If a process ended before its work was done.

    Examples:
        >>> fingerprints(["", "?!"])
        [None, None]
    """
    resolved = get_scheme(scheme)
    if workers is None:
        from es_simhash.hashing import batches  # noqa: PLC0415 - numpy takes longer to load than all the rest

        return batches.fingerprint_list(_checked(texts), resolved)
    from es_simhash.hashing.pool import FingerprintPool  # noqa: PLC0415 - loads threads and processes

    with FingerprintPool(resolved, workers=workers) as pool:
        return [hashes.fingerprint for hashes in pool.compute(_checked(texts))]


def fingerprint_array(
    texts: Iterable[str], *, scheme: str | Scheme = DEFAULT_SCHEME
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """
    Return the fingerprints of *texts* as an array, and which of them have one: :func:`fingerprints` for numpy.

    Returns:
        A ``numpy.uint64`` array with one entry for each text (0 where there is none), and a boolean array of the
        same length.

    Raises:
        TypeError: If *texts* is a string, or one of them is not a string.
        SchemeError: As :func:`fingerprint`.
    """
    from es_simhash.hashing import batches  # noqa: PLC0415 - see fingerprints

    return batches.fold_all(_checked(texts), get_scheme(scheme))


def _checked(texts: Iterable[str]) -> list[str]:
    items = list(check_items("texts", texts, of="strings"))
    for text in items:
        if not isinstance(text, str):
            raise WrongTypeError(f"text must be a str, not {type(text).__name__} {shorten(text)}")
    return items
