"""
The answer book: what must not change. Each section of a book is a digest of its rows, their number and the first ones.

``make answers`` compares on both products, ``make answers-write`` writes the books anew. A commit that does so says
which answers changed, and why they are better. Rows have only what every later issue keeps: no time, no sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from itertools import chain, islice, pairwise
from pathlib import Path

import pytest

import es_simhash
from es_simhash.arguments import PLAIN
from tests.answers.sources import DOCUMENTS, FIELDS, RULES, read_documents
from tests.servers.archives import raw_source
from tests.servers.removals import read_plan
from tests.servers.servers import PRODUCTS
from tests.servers.support import ONE_SHARD, send_lines

# "both" (products) or "write" (the books, by the first product); by default parts of two books, and half of the rules.
MODE = os.environ.get("ES_SIMHASH_ANSWERS", "")
# A folder for all rows of all sections, to see what differs.
ROWS = os.environ.get("ES_SIMHASH_ANSWERS_ROWS")
FOLDER = Path(__file__).parent
SHOWN, SHOWN_CHARACTERS = 2, 240
# By which product, of which source, which parts of the book; "plain" is "written", without what only makes it faster.
if MODE:
    CASES = [(product, source, "pure written views removal") for product in PRODUCTS for source in RULES]
    CASES += [(PRODUCTS[0], source, "plain") for source in RULES if MODE == "both"]
else:
    CASES = [
        ("elasticsearch", "tests", "pure written removal"),
        ("opensearch", "xwlb_zh", "written views"),
        ("opensearch", "tests", "plain"),
    ]

BITS = {f"{bits} bits": {"max_distance": bits, "verify": False} for bits in (0, 3, 8, 12)}
LOOKUPS = {"rule": {}, **BITS, **{name: {"preset": name} for name in es_simhash.PRESETS}}
# By each of the ten rules, so 520 in all.
LOOKED_UP = 52
# Of the texts among them, so many are asked about one by one.
ALONE = 3
SHINGLES = [
    {},
    {"size": 6},
    {"hash": "fnv1a_64"},
    {"hash": "md5"},
    *({"weighting": name} for name in ("linear", "log", "set")),
    *({"preprocess": [step]} for step in ("t2s", "numbers", "html")),
]
KEYWORDS = [{}, {"top": 20}, {"top": "auto"}, {"hash": "fnv1a_64"}, {"hash": "md5"}, {"preprocess": ["t2s"]}]
WORDS = re.compile(r"[a-z]{4,12}|[\u4e00-\u9fff]{3}")
# The files are made of the same texts, so that their words occur.
FILES = {"idf": "{} 9.5\n", "stop_words": "{}\n", "dictionary": "{} 50 n\n"}


def pick(rows, names):
    """Return the attributes *names* of each row; a share with six digits."""
    return [[_plain(getattr(row, name)) for name in names.split()] for row in rows]


def _plain(value):
    return round(value, 6) if isinstance(value, float) else value


def write_down(name, rows):
    """Return the entry of a section."""
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]
    if ROWS:
        Path(ROWS).mkdir(parents=True, exist_ok=True)
        (Path(ROWS) / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return {"rows": len(lines), "digest": digest, "first": [line[:SHOWN_CHARACTERS] for line in lines[:SHOWN]]}


def fingerprints_of(texts, folder):
    """Yield a row for each scheme."""
    few = texts[:60]
    words = sorted(set(WORDS.findall(" ".join(text[:200] for text in few))))
    for settings in SHINGLES:
        given = [f"<h1>{t[:9]}</h1><p>{t}&amp;<br>1</p>" for t in texts] if "html" in str(settings) else texts
        yield "shingles", settings, given
    for settings in KEYWORDS:
        yield "keywords", settings, few
    for name, line in FILES.items():
        path = folder / name
        path.write_text("".join(line.format(word) for word in words), encoding="utf-8")
        yield "keywords", {name: path}, few


def schemes(texts, folder):
    """Return a row for each scheme and text, without paths of files."""
    for name, settings, given in fingerprints_of(texts, folder):
        scheme = es_simhash.get_scheme(name, **settings)
        shown = {key: "file" if key in FILES else value for key, value in settings.items()}
        for value in es_simhash.fingerprints(given, scheme=scheme):
            yield [name, shown, value and es_simhash.to_hex(value)]


def queries(texts):
    """Return the query of each distance, and what distances estimate."""
    for value in es_simhash.fingerprints(texts[:3]):
        for bits in range(17):
            yield [bits, es_simhash.build_query(value, max_distance=bits)]
    yield [round(es_simhash.estimated_cosine(bits), 6) for bits in range(65)]
    yield es_simhash.to_hex(es_simhash.simhash([3**40, 5**25, 7**20, 1], [1, 2.5, 0.25, 1]))


class Answers:
    """The parts of the book of a source, about one index: each about what those before it left."""

    def __init__(self, server, simhash, index, source, folder):
        self.server, self.simhash, self.index, self.source, self.folder = server, simhash, index, source, folder
        self.rows, self.pairs = read_documents(source)
        self.bodies = {row["_id"]: row["body"] for row in self.rows}

    def pure(self):
        """Yield the name and the rows of the sections that need no server."""
        texts = [row["body"] for row in self.rows]
        yield "schemes", schemes(texts[:200], self.folder)
        yield "queries", queries(texts)

    def written(self):
        """Yield those of an index that is written, grouped and looked up in."""
        simhash, index, rows = self.simhash, self.index, self.rows
        said = "position id action canonical distance similarity fingerprinted updated"
        mappings = {"properties": FIELDS}
        simhash.create_index(index, text_field="body", passages=True, mappings=mappings, settings=ONE_SHARD)
        split = len(rows) * 4 // 5
        yield "ingest with tags", pick(simhash.ingest(index, rows[:split], **RULES[self.source]), said)
        self.refresh()
        yield "ingest with skips", pick(simhash.ingest(index, rows[split:], on_duplicate="skip"), said)
        yield "stored", self.stored()
        yield "reconcile", self.reconcile() + self.reconcile()
        yield "canonicals", self.stored()
        yield "groups", sorted([group.id, pick(group.members, "id distance")] for group in simhash.groups(index))
        pairs = pick(simhash.pairs(index), "id other_id distance similarity")
        yield "pairs", sorted([*sorted(row[:2]), *row[2:]] for row in pairs)
        ids = self.similar_ids()
        for number, (name, options) in enumerate(LOOKUPS.items()):
            start = number * LOOKED_UP % (len(ids) - LOOKED_UP)
            if MODE or number % 2 == (self.source == "xwlb_zh"):
                yield f"lookups by {name}", self.lookups(ids[start : start + LOOKED_UP], options)
        asked = [
            {**row, "_id": f"new{n}", "body": row["body"][: None if n % 2 else -40]} for n, row in enumerate(rows[::9])
        ]
        yield "screen", pick(simhash.screen(index, asked), "position answer id place distance similarity")

    plain = written

    def views(self):
        """Yield those of searches without copies, of passages, and of what two documents have in common."""
        ids, stays = self.similar_ids(), {row[0] for row in self.stored()}
        yield "search_distinct", self.searches()
        yield "find_passages", self.passages([self.bodies[id_] for id_ in ids[:20]])
        alike = [pair for pair in self.pairs if stays.issuperset(pair)][:40] + list(zip(ids[:10], ids[30:40]))
        explained = [self.simhash.explain(self.index, *pair) for pair in alike]
        yield "explain", pick(explained, "distance because similarity numbers")

    def removal(self):
        """Yield the lines of a plan, what it deletes and what comes back; then what changes make of the groups."""
        ids, path = self.similar_ids(), self.folder / "removal.db"
        plan = self.simhash.plan_removal(self.index, path)
        planned = read_plan(path).lines
        lines = [[row.document.id, row.canonical.id, *pick([row], "distance similarity loss")] for row in planned]
        yield "plan", sorted(lines)
        before = {row.document.id: raw_source(self.server, self.index, row.document.id) for row in planned}
        deleted = self.simhash.apply_removal(path, sha256=plan.sha256, max_share=1.0, large_groups=True)
        yield "apply", sorted(pick(deleted, "id action canonical distance"))
        yield "left by apply", self.stored()
        yield "restore", sorted(pick(self.simhash.restore(path), "id action canonical"))
        back = [[id_, source == raw_source(self.server, self.index, id_)] for id_, source in sorted(before.items())]
        yield "as before", back
        yield "canonicals after restore", self.stored()
        changed = [{"delete": {"_index": self.index, "_id": id_}} for id_ in ids[:200]]
        for one, other in zip(ids[200:400], ids[210:410], strict=False):
            changed += [{"update": {"_index": self.index, "_id": one}}, {"doc": {"body": self.bodies[other][:-20]}}]
        send_lines(self.server, changed)
        list(self.simhash.backfill(self.index))
        self.refresh()
        yield "reconcile after changes", self.reconcile()
        yield "canonicals after changes", self.stored()

    def refresh(self):
        self.server.request("POST", f"/{self.index}/_refresh")

    def stored(self):
        """Return what is stored of each document, by id, sorted: its fingerprint, group and canonical."""
        self.refresh()
        names = ("fingerprint", "group", "duplicate_of")
        hits = []
        for begin in range(0, DOCUMENTS, 500):  # a page of ten thousand texts is too much for a small server
            query = {"range": {"n": {"gte": begin, "lt": begin + 500}}}
            body = {"size": 500, "query": query, "_source": [f"simhash.{name}" for name in names]}
            hits += self.server.request("POST", f"/{self.index}/_search", body)["hits"]["hits"]
        return sorted([hit["_id"], *map(hit["_source"].get("simhash", {}).get, names)] for hit in hits)

    def similar_ids(self):
        """Return the ids of the documents that are there of each pair that is alike."""
        present = {row[0] for row in self.stored()}
        return list(dict.fromkeys(id_ for pair in self.pairs for id_ in pair if id_ in present))

    def reconcile(self):
        return pick([self.simhash.reconcile(self.index)], "documents groups duplicates changed is_settled")

    def lookups(self, ids, options):
        """Yield a row for each lookup by one rule: of texts, half of them cut, of documents, and of many at once."""
        simhash, index = self.simhash, self.index
        asked = [(id_, self.bodies[id_][: None if n // 4 % 2 else -40]) for n, id_ in enumerate(ids)]
        one, of, many, memory = (asked[start::4] for start in range(4))
        found = [simhash.find_near_dups(index, text, **options) for _, text in one[:ALONE]]
        found += simhash.find_near_dups_many(index, [text for _, text in one[ALONE:]], lookups="server", **options)
        found += [simhash.find_near_dups_of(index, id_, **options) for id_, _ in of]
        for some, where in ((many, "server"), (memory, "memory")):
            found += simhash.find_near_dups_many(index, [text for _, text in some], lookups=where, **options)
        for number, answer in enumerate(found):
            yield [number, answer.max_distance, pick(answer, "id distance similarity")]

    def searches(self):
        """Yield the pages of searches without copies, sorted by a field: scores differ between the products."""
        for begin, end in ((0, 10_000), (100, 900), (700, 760)):
            body = {"query": {"range": {"n": {"gte": begin, "lt": end}}}, "sort": [{"n": "asc"}], "_source": False}
            for page in islice(self.simhash.search_distinct_pages(self.index, body, size=50, total=True), 4):
                yield [begin, page.total, pick(page.hits, "id group")]

    def passages(self, texts):
        """Yield the documents that share a passage with a text made of parts of two."""
        for one, other in pairwise(texts):
            for min_run in (100, 200):
                text = one[50:650] + " " + other[-500:]
                for overlap in self.simhash.find_passages(self.index, text, min_run=min_run):
                    places = pick(overlap.passages, "start end other_start other_end")
                    yield [min_run, *pick([overlap], "id contained contains similarity"), places]


@pytest.mark.parametrize(("server", "source", "parts"), CASES, indirect=["server"])
def test_the_answers_are_those_of_the_book(server, sync_client, index, source, parts, tmp_path, monkeypatch):
    """Whoever changes an answer says so, and why: see CONTRIBUTING.md."""
    monkeypatch.setenv(PLAIN, str(int(parts == "plain")))
    path = FOLDER / f"{source}.json"
    made = Answers(server, es_simhash.SimHashClient(sync_client), index, source, tmp_path)
    sections = chain.from_iterable(getattr(made, part)() for part in parts.split())
    found = {name: write_down(f"{server.product}, {source}, {name}", rows) for name, rows in sections}
    if MODE == "write" and server.product == PRODUCTS[0]:
        path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    book = json.loads(path.read_text(encoding="utf-8"))
    names = {**book, **found} if MODE and parts != "plain" else found
    differ = {name: [book.get(name), found.get(name)] for name in names if book.get(name) != found.get(name)}
    shown = json.dumps(differ, indent=1, ensure_ascii=False)
    assert not differ, (
        f"these answers are not those of {path.name}; each section as it was and as it is: {shown}\n"
        "To see all rows, run both trees with ES_SIMHASH_ANSWERS_ROWS=FOLDER; to write the books: make answers-write"
    )
