"""Schemes: names, parameters, descriptions, the user's own files, and what is refused."""

import pickle
from importlib import metadata

import pytest
from hypothesis import given, strategies as st

from es_simhash.errors import MissingDependencyError, SchemeError
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint, fingerprints, get_scheme, schemes
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.hashing.registry import find_files, with_contents
from es_simhash.hashing.segment import segmenter

CHINESE = "石墨烯电池实验室发布了新的充电技术，研究人员说它能在五分钟内充满。"


def test_schemes_are_values():
    """A scheme is frozen, hashable, picklable, and equal by what decides the bits; a name means the newest version."""
    assert get_scheme("shingles") == get_scheme("shingles-3") == get_scheme()
    assert Scheme.from_dict({"name": "shingles", "version": 3}) == get_scheme("shingles-3")
    assert DEFAULT_SCHEME in ("shingles", *schemes())
    scheme = get_scheme("shingles", size=5)
    assert {scheme: 1}[get_scheme("shingles-3", size=5)] == 1
    assert pickle.loads(pickle.dumps(scheme)) == scheme  # noqa: S301 -- pickled in this line
    assert scheme != get_scheme("shingles")
    assert str(scheme) == "shingles-3(size=5)"
    with pytest.raises(AttributeError):
        scheme.name = "keywords"
    with pytest.raises(TypeError):
        scheme.parameters["size"] = 6


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        ("shingle", {}, SchemeError, "unknown scheme 'shingle'"),
        ("shingles-9", {}, SchemeError, "upgrade"),
        ("shingles-2", {}, SchemeError, r"a former scheme, .* shingles-3: run remove_fields\(index\), then setup"),
        ("shingles-0", {}, SchemeError, "unknown scheme"),
        ("", {}, SchemeError, "unknown scheme"),
        (7, {}, TypeError, "int"),
        ("shingles", {"size": 0}, SchemeError, "out of range"),
        ("shingles", {"size": 17}, SchemeError, "out of range"),
        ("shingles", {"size": "4"}, TypeError, "size must be an int"),
        ("shingles", {"size": True}, TypeError, "size must be an int"),
        ("shingles", {"top": 3}, SchemeError, "give hash, size, weighting"),
        ("shingles", {"hash": "sha1"}, SchemeError, "fnv1a_64, md5, xxh3_64"),
        ("shingles", {"seed": 0}, SchemeError, "no parameter 'seed'"),
        ("shingles", {"weighting": "tf"}, SchemeError, "linear, log, set"),
        ("shingles", {"preprocess": ["pdf"]}, SchemeError, "html, links, numbers, t2s"),
        ("shingles", {"preprocess": ["t2s", "t2s"]}, SchemeError, "twice"),
        ("weighted", {}, SchemeError, "give one of keywords-1, shingles-3"),
        ("keywords", {"top": 0}, SchemeError, "out of range"),
        ("keywords", {"top": "all"}, SchemeError, "auto"),
        ("keywords", {"method": "tfidf"}, SchemeError, "no parameter 'method'"),
        ("keywords", {"dictionary": "/nowhere/words.txt"}, SchemeError, "cannot read dictionary"),
        ("keywords", {"idf": 5}, TypeError, "path"),
    ],
)
def test_refused_settings(name, settings, error, words):
    """A name or parameter that cannot be used is refused in one line that says what can."""
    with pytest.raises(error, match=words) as caught:
        get_scheme(name, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "minhash"}, "unknown scheme"),
        ({"version": 99}, "upgrade es_simhash"),
        ({"version": "1"}, "name and a version"),
        ({"parameters": {"size": 4, "stride": 2}}, "no parameter 'stride'"),
        ({"parameters": []}, "must be a mapping"),
        ({"window": 3}, "unknown parts window"),
        ({"preprocess": ["t2s"]}, "does not fit its libraries"),
        ({"preprocess": "t2s"}, "must be a list"),
        ({"digests": {"dictionary": "0" * 64}}, "unknown 'dictionary'"),
    ],
)
def test_refused_descriptions(change, words):
    """A description from a newer version, or a broken one, is refused."""
    with pytest.raises(SchemeError, match=words):
        Scheme.from_dict(get_scheme("shingles").to_dict() | change)


@pytest.mark.parametrize(("name", "former"), [("shingles", {"seed": 0}), ("keywords", {"seed": 0, "method": "tfidf"})])
def test_what_older_indices_record_of_former_parameters_is_read(name, former):
    scheme = get_scheme(name)
    recorded = scheme.to_dict()
    recorded["parameters"] |= former
    assert Scheme.from_dict(recorded) == scheme
    with pytest.raises(SchemeError, match="no parameter 'seed'"):
        Scheme.from_dict(recorded | {"parameters": former | {"seed": 7}})


@pytest.mark.parametrize(("purpose", "content"), [("idf", "石墨烯 9.5\n充电 3.25\n"), ("stop_words", "充电\n")])
def test_files_are_known_by_digest(tmp_path, purpose, content):
    """A file's digest is part of the scheme, its place is not; a scheme of a mapping has none, whatever was read."""
    path, copy = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text(content, encoding="utf-8")
    copy.write_bytes(path.read_bytes())
    before = fingerprint(CHINESE, scheme="keywords")
    scheme = get_scheme("keywords", **{purpose: path})
    assert scheme == get_scheme("keywords", **{purpose: str(copy)}) != get_scheme("keywords")
    assert str(tmp_path) not in str(scheme.to_dict())
    own = fingerprint(CHINESE, scheme=scheme)
    assert own != before == fingerprint(CHINESE, scheme="keywords")
    recorded = Scheme.from_dict(scheme.to_dict())
    assert (recorded, recorded.files) == (scheme, {})
    with pytest.raises(SchemeError, match=f'give files={{"{purpose}": PATH}}') as caught:
        fingerprint(CHINESE, scheme=recorded)
    assert scheme.digests[purpose] in str(caught.value)
    given = find_files({purpose: copy})
    for found in (get_scheme(recorded, **{purpose: copy}), recorded.with_files(given), with_contents(scheme)):
        assert fingerprint(CHINESE, scheme=found) == own
    copy.write_text("技术\n", encoding="utf-8")
    for use in (
        lambda: fingerprint(CHINESE, scheme=recorded.with_files(given)),
        lambda: get_scheme(recorded, **{purpose: copy}),
    ):
        with pytest.raises(SchemeError, match=scheme.digests[purpose][:12]):
            use()


def test_a_file_that_no_scheme_has(tmp_path):
    with pytest.raises(SchemeError, match="no scheme has a file 'top': give some of dictionary, idf, stop_words"):
        find_files({"top": tmp_path})


@pytest.mark.parametrize(
    ("purpose", "content", "words"),
    [
        ("idf", b"", "empty"),
        ("idf", "石墨烯\n".encode(), "line 1"),
        ("idf", "石墨烯 nan\n".encode(), "line 1"),
        ("idf", "石墨烯 9 9\n".encode(), "line 1"),
        ("idf", b"\xff\xfe\x00", "not UTF-8"),
        ("stop_words", b"\xff\xfe\x00", "not UTF-8"),
        ("dictionary", b"\xff\xfe\x00", "line 1 of the dictionary is not UTF-8"),
        ("dictionary", "石墨烯 50 n\n石墨烯产业园\t50\tn\n".encode(), r"line 2 .* ends a word at '\\t'"),
        ("dictionary", "石墨烯 50.0 n\n".encode(), "line 1"),
        ("dictionary", "石墨烯 50 N\n".encode(), "line 1"),
        ("dictionary", "石墨烯,50,n\n".encode(), "line 1"),
        ("dictionary", "石墨烯  50 n\n".encode(), "line 1"),
        ("dictionary", "*ST舜船 50\n".encode(), r"line 1 .* ends a word at '\*'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, purpose, content, words):
    """A file of the wrong kind is refused with what is wrong about it."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SchemeError, match=words):
        fingerprint(CHINESE, scheme=get_scheme("keywords", **{purpose: path}))


def test_lines_of_a_dictionary_that_can_be_used(tmp_path):
    """A word alone, with a frequency, a tag or both, empty lines, a byte-order mark and other line ends."""
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff石墨烯产业园\r\n\n园区入驻 50\nAT&T n\n开园今天 3 nz".encode())
    words = ["石墨烯产业园", "园区入驻", "AT&T", "开园今天"]
    counts = segmenter(get_scheme("keywords", dictionary=path)).count_all([f"今天的{word}在这里" for word in words])
    assert [found[word] for word, found in zip(words, counts)] == [1] * 4
    [plain] = segmenter(get_scheme("keywords")).count_all([f"今天的{words[0]}在这里"])
    assert plain[words[0]] == 0


def test_texts_must_be_several():
    """A single string is not taken for a list of characters."""
    with pytest.raises(TypeError, match="a list of strings, not str"):
        fingerprints("text")
    assert fingerprints([]) == []
    assert fingerprints(iter(["a", ""])) == [fingerprint("a"), None]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<title>t</title><p>one t<b>w</b>o</p><p>three &amp; four<br>five</p>", "one two three & four five"),
        ("<script>if (a < b) { s = '</p>' } // six</SCRIPT >seven<style>p { }</style>", "seven"),
        ("<!-- <p>gone</p> -->a<!doctype html><?xml ?>b<!-- to the end", "ab"),
        ("""<a title="a > b" href='x>y'>link</a> <img alt="it"s">end""", "link end"),
        ("1 < 2 and <3; a <- b; &lt;p&gt; &copy; &#x4eac;", "1 < 2 and <3; a <- b; <p> © 京"),
        ("<noscript>gone", ""),
        ("", ""),
    ],
)
def test_html(html, text):
    """HTML becomes the text a reader sees; blocks part words, inline tags do not."""
    scheme = get_scheme("shingles", preprocess="html")
    assert scheme.libraries == {}
    assert " ".join(preprocessor(scheme)([html])[0].split()) == text
    assert fingerprint(html, scheme=scheme) == fingerprint(text)


@pytest.mark.parametrize("text", ["<a ", "<!--", "<script>", '<a "', "<!", "</", "<a b='\">", "a-"])
def test_steps_of_a_long_text(text):
    """Markup that ends nowhere, and a run without a blank, take no more than linear work."""
    for step in ("html", "numbers"):
        assert len(preprocessor(get_scheme("shingles", preprocess=step))([text * 50_000])) == 1


def test_traditional_to_simplified():
    """Traditional and simplified forms of a text are the same text."""
    pytest.importorskip("opencc")
    scheme = get_scheme("shingles", preprocess=["html", "t2s"])
    assert fingerprint("<p>臺灣的漢語圖書館</p>", scheme=scheme) == fingerprint("台湾的汉语图书馆", scheme=scheme)
    assert fingerprint("臺灣\0漢\udfff語圖書館", scheme=scheme) == fingerprint("台湾汉语图书馆", scheme=scheme)
    assert Scheme.from_dict(scheme.to_dict()) == scheme


def test_other_library_version_is_refused():
    """A scheme made with another version of a library is refused, naming both and the way out."""
    pytest.importorskip("opencc")
    recorded = get_scheme("shingles", preprocess="t2s").to_dict() | {"libraries": {"OpenCC": "0.0.1"}}
    with pytest.raises(SchemeError, match=r"OpenCC==0\.0\.1"):
        fingerprint("漢語", scheme=Scheme.from_dict(recorded))


def test_missing_library_names_the_extra(monkeypatch):
    """Without the library the message names the extra to install."""

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(MissingDependencyError, match=r"es-simhash\[preprocess\]"):
        get_scheme("shingles", preprocess="t2s")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "2026-11-26 22:31:07,123 INFO Received block blk_-1608 of size=91178 from /10.250.14.224:50010",
            "INFO Received block of size= from /",
        ),
        (
            "Nov 26 22:31:07 host sshd[1234]: session 550e8400-e29b-41d4-a716-446655440000 closed",
            "Nov host sshd[ ]: session closed",
        ),
        ("12\n00:01:02,345 --> 00:01:05,678\nGood evening.", "--> Good evening."),
        ("11月26日，成交额1.5亿元，上涨3,200点", "月 日，成交额 亿元，上涨 点"),
        ("٢٠٢٦ عام", "عام"),
        ("no number: here, and/or there", "no number: here, and/or there"),
        ("COVID-19", ""),
        ("", ""),
    ],
)
def test_numbers_are_left_out(text, left):
    """The step leaves out numbers, times, addresses and ids, and nothing else; the rest has its usual bits."""
    scheme = get_scheme("shingles", preprocess="numbers")
    assert scheme.libraries == {}
    assert str(scheme) == "shingles-3(preprocess=numbers)"
    assert Scheme.from_dict(scheme.to_dict()) == scheme
    assert " ".join(preprocessor(scheme)([text])[0].split()) == left
    assert fingerprint(text, scheme=scheme) == fingerprint(left)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("read this https://t.co/a1B2c?x=%20#y now", "read this now"),
        ("转发https://t.cn/A6xYz，今天的新闻", "转发 ，今天的新闻"),
        ("see WWW.Example.com/path and http://[::1]:9200/x", "see and"),
        ("(http://a.example/b)<b>", "( <b>"),
        ("wwwhat http: //x", "wwwhat http: //x"),
    ],
)
def test_links_are_left_out(text, left):
    """A post that is sent again with another short link is the same post."""
    assert " ".join(preprocessor(get_scheme("shingles", preprocess="links"))([text])[0].split()) == left


@given(st.text(alphabet="a_9٣９-./:, é年", max_size=30))
def test_numbers_against_the_definition(written):
    """What stays has no digit, and is what was there; a long run takes no more than linear work."""
    left = preprocessor(get_scheme("shingles", preprocess="numbers"))([written])[0]
    assert not set(left) & set("9٣９")
    rest = iter(written)
    assert all(letter in rest for letter in left.replace(" ", ""))
    if not set(written) & set("9٣９"):
        assert left == written
