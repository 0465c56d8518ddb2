"""The grouping that a caller asks for: plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import get_scheme
from es_simhash.lookup.lookup_options import Verify, asked_rule
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import IndexSettings, no_text_field
from es_simhash.mapping.rule import LONGEST, Canonical, Grouping, check_order, default_rule
from es_simhash.texts.measures import Preset, get_preset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingRequest:
    """
    The grouping that a caller asks for; ``None`` means what is recorded, else the default.

    ``False`` switches *verify*, *per* or *within* off. What is given beside *preset* goes before it.

    Args:
        preset:
            ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a similarity
            that were measured together. An explicit max_distance or verify overrides the preset.
        verify:
            Smallest similarity of the texts of duplicates (shingle Jaccard, 0 to 1); ``True`` for that of the
            preset, else that recorded, else .8; ``False`` to go by distance alone. A :class:`Verification` for
            another measure, such as the edit similarity of characters. By default what the index records.
        max_distance:
            Largest distance of a duplicate in bits, inclusive, 0 to 64; by default what the index records, else
            12. The first ingest that groups records these settings in the mapping.
        canonical:
            Which document :meth:`reconcile` prefers as canonical; a list of keys, or one: a date or number field
            (the earliest or smallest; ``"-field"`` for the latest), ``"longest"``, ``"field:a>b>*"``, values of a
            keyword field, the preferred one first, or ``"id"`` (the smallest, which decides last). By default
            ``"simhash.at"``: the document that was grouped first, as ``ingest`` decides.
        per:
            A keyword field; only documents with the same value are duplicates of each other. ``False`` for none.
        within:
            A date field and a span, as in ``("published", "7d")``; only documents whose dates differ by at most
            that are duplicates of each other. ``False`` for none.
    """

    preset: str | Preset | None = None
    verify: Verify | None = None
    max_distance: int | None = None
    canonical: Canonical | None = None
    per: str | Literal[False] | None = None
    within: tuple[str, str] | Literal[False] | None = None

    def __post_init__(self) -> None:
        self.put_on(Grouping())  # refuses what cannot be used before a server is asked

    def check_scheme(self, settings: IndexSettings) -> None:
        """Raise if the preset was measured with another scheme than that of an index with *settings*."""
        preset = None if self.preset is None else get_preset(self.preset)
        if preset is None or not preset.scheme:
            return
        if not settings.scheme.has_features_of(get_scheme(preset.scheme)):
            raise InvalidInputError(
                f"preset {preset.name!r} is for scheme {preset.scheme}, and the index has {settings.scheme}: give "
                "max_distance and verify instead"
            )

    def put_on(self, grouping: Grouping) -> Grouping:
        """Return *grouping* with everything that is asked for in its place."""
        asked = asked_rule(
            grouping,
            preset=self.preset,
            verify=self.verify,
            max_distance=self.max_distance,
            per=self.per,
            within=self.within,
        )
        return asked if self.canonical is None else replace(asked, order=check_order(self.canonical))


def choose_grouping(
    settings: IndexSettings,
    request: GroupingRequest,
    *,
    prefix: str = DEFAULT_PREFIX,
    has_texts: bool | None = None,
    may_differ: bool = False,
) -> Grouping:
    """
    Return the grouping that applies: the recorded one, else the request completed by the defaults.
    The one that was grouped first stays, by its moment below *prefix*.
    *has_texts*: whether every index concerned records its text fields; then texts are compared by default. *may_differ*
    allows a request other than the record: for a dry run, which writes nothing, and to group an index anew.
    """
    has_texts = bool(settings.text_fields) if has_texts is None else has_texts
    request.check_scheme(settings)
    recorded = Grouping.read(settings)
    if recorded is None:
        # Without a distance that is asked for or recorded, bits alone are safe within 3 only.
        usual = default_rule(settings, has_texts=has_texts and request.verify is not False)
        chosen = request.put_on(
            Grouping(usual.max_distance, usual.similarity, usual.measure, order=(Fields(prefix).at,))
        )
    else:
        chosen = request.put_on(recorded)
        if chosen != recorded and not may_differ:
            raise InvalidInputError(
                f"the index is grouped by {recorded}, not by {chosen}: leave these options out, change the grouping "
                "with reconcile(index, regroup=True), or group by another rule under a second prefix"
            )
    if chosen.similarity is not None and not has_texts:
        raise no_text_field("texts cannot be compared", "compare none (verify=False)")
    if not has_texts and any(key.kind == LONGEST for key in chosen.order_keys):
        raise no_text_field("the longest text is not known", "choose another canonical order")
    return replace(chosen, measure=chosen.measure.after(settings.scheme))
