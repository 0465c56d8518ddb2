"""Masks of template text: their files, the schemes that leave them out, and what is learned of texts."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from es_simhash import SchemeError, build_mapping, fingerprint, fingerprints, get_scheme
from es_simhash.hashing import Scheme, registry as files
from es_simhash.hashing.mask import LARGEST_MASK
from es_simhash.mapping.meta import build_settings
from es_simhash.pipeline.build import build_pipeline
from es_simhash.texts.measures import UNITS, TextMeasure

VECTORS = json.loads((Path(__file__).parents[1] / "boilerplate_vectors.json").read_text(encoding="utf-8"))
FOOTER = "This message is confidential. If you are not the person whom it was meant for, delete it and tell the sender."
NOTICE = "本邮件及附件含有机密信息，仅供收件人使用；如果您误收了本邮件，请立即通知发件人，并删除本邮件的内容，谢谢。"


def write_mask(path, *texts):
    """Write the mask of *texts*, and return its path."""
    path.write_text(
        json.dumps({"format": "es-simhash boilerplate", "version": 1, "passages": [{"text": text} for text in texts]})
    )
    return path


@pytest.fixture
def mask(tmp_path):
    """A mask of an English and a Chinese passage."""
    return write_mask(tmp_path / "mask.json", FOOTER, NOTICE)


def memos(count, seed=1):
    """Different texts of eight sentences of random words."""
    chance = np.random.default_rng(seed)
    words = ["".join(chance.choice(list("abcdefghijklmnoprstuv"), 6)) for _ in range(2_000)]
    return [". ".join(" ".join(chance.choice(words, 9)) for _ in range(8)) + "." for _ in range(count)]


def test_golden_fingerprints(tmp_path):
    """A mask of version 1 has its digest and leaves out the same text for ever."""
    path = write_mask(tmp_path / "mask.json", *VECTORS["passages"])
    for each in VECTORS["schemes"]:
        scheme = get_scheme(each["scheme"], boilerplate=path)
        assert scheme.digests["boilerplate"] == VECTORS["digest"]
        found = fingerprints(VECTORS["texts"].values(), scheme=scheme)
        assert [None if value is None else f"{value:016x}" for value in found] == each["fingerprints"]


@pytest.mark.parametrize("name", ["shingles", "keywords"])
def test_a_passage_makes_no_difference(mask, name):
    """With and without the passage, before, inside or after it, a text has one fingerprint; it alone has none."""
    scheme = get_scheme(name, boilerplate=mask)
    first, second = (
        "石墨烯电池的充电技术取得突破。The meeting is at nine on Monday.",
        "会议在北京举行。Bring the annual report.",
    )
    bare = fingerprint(f"{first} {second}", scheme=scheme)
    assert bare == fingerprint(f"{first} {second}", scheme=name)
    for template in (FOOTER, NOTICE, FOOTER.upper(), f"{FOOTER}\n{NOTICE}"):
        for text in (
            f"{first} {second}\n{template}",
            f"{template}\n{first} {second}",
            f"{first}\n{template}\n{second}",
        ):
            assert fingerprint(text, scheme=scheme) == bare != fingerprint(text, scheme=name)
        assert fingerprint(template, scheme=scheme) is None


def test_every_measure_leaves_it_out(mask):
    """Verification compares what fingerprints see: texts that share only the template have nothing in common."""
    scheme = get_scheme("shingles", boilerplate=mask)
    texts = ["The boat leaves at nine. " + FOOTER, "Lunch is served below deck? " + FOOTER]
    for name in ("jaccard", "containment"):
        for unit in UNITS:
            measure = TextMeasure(name, unit).after(scheme)
            assert (
                measure.compare(*measure.prepare(texts)).similarity
                == 0
                < TextMeasure(name, unit).compare(*TextMeasure(name, unit).prepare(texts)).similarity
            )


def test_order_form_and_notes_are_no_part_of_a_mask(tmp_path, mask):
    """A mask is its passages: what people write beside them, their order, case and line breaks change no digest."""
    other = tmp_path / "edited.json"
    passages = [
        {"text": NOTICE, "note": "ours"},
        {"text": FOOTER.replace(" ", "\n").upper(), "documents": 3},
        {"text": NOTICE},
    ]
    other.write_text(json.dumps({"passages": passages, "version": 1, "format": "es-simhash boilerplate"}, indent=7))
    scheme = get_scheme("shingles", boilerplate=mask)
    assert scheme == get_scheme("shingles", boilerplate=other) != get_scheme("shingles")
    assert scheme != get_scheme("shingles", boilerplate=write_mask(other, FOOTER))
    with pytest.raises(SchemeError, match=scheme.digests["boilerplate"][:12]):
        get_scheme(Scheme.from_dict(scheme.to_dict()), boilerplate=other)


def test_a_scheme_without_its_mask_is_refused(tmp_path):
    """A scheme that was read from an index names the mask that it needs; given again, it goes on."""
    path = write_mask(tmp_path / "mask.json", FOOTER + " Only for this test.")
    scheme = get_scheme("shingles", boilerplate=path)
    recorded = Scheme.from_dict(scheme.to_dict())
    assert recorded == scheme
    assert str(tmp_path) not in json.dumps(build_mapping(scheme=scheme))
    with pytest.raises(SchemeError, match=r'pass get_scheme\("shingles", boilerplate=PATH\)') as caught:
        fingerprint("a text", scheme=recorded)
    assert caught.value.missing_file == "boilerplate"
    with pytest.raises(SchemeError, match="boilerplate"):
        TextMeasure().after(recorded).prepare(["a text"])
    copy = pickle.loads(pickle.dumps(scheme))  # noqa: S301 -- it was made here
    assert fingerprint("a text", scheme=copy) == fingerprint("a text")


def test_a_mask_can_be_sent_to_another_machine(tmp_path, monkeypatch):
    """A process without the file, such as an executor of Spark, is given its content."""
    path = write_mask(tmp_path / "mask.json", FOOTER + " Only for executors.")
    scheme = Scheme.from_dict(get_scheme("shingles", boilerplate=path).to_dict())
    monkeypatch.setattr(files, "_provided", {})
    files.provide_file(path.read_bytes(), purpose="boilerplate")
    assert fingerprint(f"A text. {FOOTER}", scheme=scheme) == fingerprint("a text")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", '"format"'),
        (b'{"format": "other"}', '"format"'),
        (b'{"format": "es-simhash boilerplate", "version": 2}', "upgrade es_simhash"),
        (b'{"format": "es-simhash boilerplate", "version": 1}', "no passages"),
        (b'{"format": "es-simhash boilerplate", "version": 1, "passages": []}', "no passages"),
        (b'{"format": "es-simhash boilerplate", "version": 1, "passages": ["x"]}', "passage 1"),
        (b'{"format": "es-simhash boilerplate", "version": 1, "passages": [{"text": 5}]}', "passage 1"),
        (b'{"format": "es-simhash boilerplate", "version": 1, "passages": [{"text": "Sent by phone"}]}', "11 letters"),
        (b" " * (LARGEST_MASK + 1), "remove passages"),
    ],
)
def test_refused_masks(tmp_path, content, words):
    """What is no mask is refused in one line that names the file."""
    path = tmp_path / "mask.json"
    path.write_bytes(content)
    with pytest.raises(SchemeError, match=words) as caught:
        get_scheme("shingles", boilerplate=path)
    assert "cannot use boilerplate" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_who_takes_no_mask(mask):
    """The caller's own features have no text, and a server cannot leave out what stands in a file."""
    with pytest.raises(SchemeError, match="no parameter 'boilerplate'"):
        get_scheme("weighted", boilerplate=mask)
    with pytest.raises(SchemeError, match="has no boilerplate") as caught:
        build_pipeline(text_field="body", scheme=get_scheme("shingles", boilerplate=mask))
    assert "\n" not in str(caught.value)


def test_passages_are_those_of_the_whole_text(mask):
    """A mask and passages go together: passages are places in the original text, so nothing is left out of them."""
    assert build_settings(scheme=get_scheme("shingles", boilerplate=mask), passages=True).passages == "complete"
