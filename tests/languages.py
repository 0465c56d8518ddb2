"""
Models of the query languages that people paste text of: as little of ES|QL, PPL and KQL as our texts use.

They run only inside products that cannot be installed here, so these models stand for them. They follow the grammars in
the sources of Elasticsearch 9 and Kibana, and the pages of OpenSearch, and refuse everything that they do not know. A
document is a dict of dotted names to values; one that lacks a field has no such key.
"""

import re
from collections import Counter

_ESQL_STRING = r'"(?:\\[tnr"\\]|[^\r\n"\\])*"'
_ESQL_NAME = r"(?:`(?:[^`]|``)+`|[A-Za-z][A-Za-z0-9_]*|[_@][A-Za-z0-9_]+)"
_ESQL_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", '\\"': '"', "\\\\": "\\"}


class Tokens:
    """The words of a condition, from left to right."""

    def __init__(self, text, pattern):
        self._found = []
        at = 0
        for match in re.finditer(rf"\s*(?:{pattern})", text, re.DOTALL):
            assert match.start() == at, f"cannot read {text[at : at + 40]!r}"
            self._found.append(match[0].strip())
            at = match.end()
        assert not text[at:].strip(), f"cannot read {text[at : at + 40]!r}"
        self._found.reverse()

    def peek(self):
        return self._found[-1] if self._found else None

    def take(self, *wanted):
        token = self._found.pop()
        assert not wanted or token in wanted, f"{token!r} is not {wanted}"
        return token


def _condition(tokens, words, leaf):
    """Return a predicate. *words* are those for or, and, not, from the loosest to the tightest."""
    or_, and_, not_ = words

    def several(word, part):
        parts = [part()]
        while tokens.peek() == word:
            tokens.take()
            parts.append(part())
        return parts

    def any_of():
        parts = several(or_, all_of)
        return lambda document: any(each(document) for each in parts)

    def all_of():
        parts = several(and_, one)
        return lambda document: all(each(document) for each in parts)

    def one():
        if tokens.peek() == not_:
            tokens.take()
            part = one()
            return lambda document: not part(document)
        if tokens.peek() == "(":
            tokens.take()
            part = any_of()
            tokens.take(")")
            return part
        return leaf()

    found = any_of()
    assert tokens.peek() is None, tokens.peek()
    return found


def esql_string(text):
    """Return what a string of ES|QL stands for."""
    assert re.fullmatch(_ESQL_STRING, text), text
    return re.sub(r"\\.", lambda match: _ESQL_ESCAPES[match[0]], text[1:-1])


def _esql_field(text):
    assert re.fullmatch(rf"{_ESQL_NAME}(?:\.{_ESQL_NAME})*", text), text
    return ".".join(part[1:-1].replace("``", "`") if part[0] == "`" else part for part in re.findall(_ESQL_NAME, text))


def _has_word(document, field, word):
    return word in document.get(field, "").lower().split()


def _esql_condition(text):
    if match := re.fullmatch(rf"MATCH\((\S+), ({_ESQL_STRING})\)", text):
        return lambda document: _has_word(document, _esql_field(match[1]), esql_string(match[2]))
    tokens = Tokens(text, rf"{_ESQL_STRING}|{_ESQL_NAME}(?:\.{_ESQL_NAME})*|<=|[0-9]+|[(),]")

    def leaf():
        field = _esql_field(tokens.take())
        word = tokens.take("IN", "IS", "NOT", "<=")
        if word == "<=":
            most = int(tokens.take())
            return lambda document: document.get(field) is not None and document[field] <= most
        if word == "IS":
            tokens.take("NOT")
            tokens.take("NULL")
            return lambda document: document.get(field) is not None
        if word == "NOT":
            tokens.take("IN")
        tokens.take("(")
        values = {esql_string(tokens.take())}
        while tokens.take(",", ")") == ",":
            values.add(esql_string(tokens.take()))
        # A comparison with null is null, which WHERE treats as false.
        return lambda document: field in document and (document[field] in values) == (word == "IN")

    return _condition(tokens, ("OR", "AND", "NOT"), leaf)


def _to_dense_vector(text):
    """Return the bytes of a hex string as signed numbers, as ES|QL's function does; null for what is not hex."""
    if text is None or not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", text):
        return None
    return [each - 256 if each > 127 else each for each in bytes.fromhex(text)]


def _v_hamming(left, right):
    """Return the number of differing bits of the bytes of two vectors; null if either is null."""
    if left is None or right is None:
        return None
    assert len(left) == len(right)
    return float(sum(((a ^ b) & 0xFF).bit_count() for a, b in zip(left, right)))


def _esql_eval(text, document):
    column, _, expression = text.partition(" = ")
    if match := re.fullmatch(rf"V_HAMMING\(TO_DENSE_VECTOR\((.+)\), TO_DENSE_VECTOR\(({_ESQL_STRING})\)\)", expression):
        held = _to_dense_vector(document.get(_esql_field(match[1])))
        value = _v_hamming(held, _to_dense_vector(esql_string(match[2])))
    else:
        match = re.fullmatch(r"COALESCE\((\S+), (\S+)\)", expression)
        value = document.get(_esql_field(match[1]), document[match[2]])
    return {**document, _esql_field(column): value}


def run_esql(text, documents):
    """Return the rows of a query over *documents*, which have ``_index`` and ``_id``. A source is no pattern."""
    lines = [line for line in text.split("\n") if not line.startswith("//")]
    source = re.fullmatch(rf"FROM ({_ESQL_STRING}(?:, {_ESQL_STRING})*|\w+) METADATA (?:_index, )?_id", lines[0])
    names = {esql_string(each) for each in re.findall(_ESQL_STRING, source[1])} or {source[1]}
    rows = [each for each in documents if each["_index"] in names]
    limit = 1_000
    for line in lines[1:]:
        assert line.startswith("| "), line
        command, _, rest = line[2:].partition(" ")
        if command == "WHERE":
            matches = _esql_condition(rest)
            rows = [row for row in rows if matches(row)]
        elif command == "EVAL":
            rows = [_esql_eval(rest, row) for row in rows]
        elif command == "STATS":
            column, by = re.fullmatch(r"(\w+) = COUNT\(\*\) BY (\w+)", rest).groups()
            rows = [{by: value, column: number} for value, number in Counter(row[by] for row in rows).items()]
        elif command == "SORT" and rest.endswith(" DESC"):
            rows = sorted(rows, key=lambda row: -row[rest.removesuffix(" DESC")])
        elif command == "SORT":
            columns = rest.split(", ")
            rows = sorted(rows, key=lambda row: [row[column] for column in columns])
        elif command == "LIMIT":
            limit = min(int(rest), 10_000)
        else:
            assert (command, rest[-3:]) == ("KEEP", ", *"), line
    return rows[:limit]


def run_ppl(text, documents):
    """Return the rows of a query over *documents*, which are those of its source."""
    source, where, dedup, fields = text.strip().split("\n")
    assert re.fullmatch(r"source = \w+", source), source
    field, word = re.fullmatch(r"\| where match\((\w+), '(\w+)'\)", where).groups()
    group = re.fullmatch(r"\| dedup (\S+) keepempty = true", dedup)[1]
    rows, seen = [], set()
    for document in documents:
        value = document.get(group)
        if _has_word(document, field, word) and (value is None or value not in seen):
            rows.append({name: document.get(name) for name in fields.removeprefix("| fields ").split(", ")})
            seen.add(value)
    return rows


_KQL_STRING = r'"(?:\\.|[^"\\])*"'
_KQL_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", '\\"': '"', "\\\\": "\\"}


def _kql_value(text):
    if not text.startswith('"'):
        assert not re.search(r'[\\():<>"*{}]', text), text
        return text
    units = re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|.)",
        lambda match: chr(int(match[1], 16)) if match[1] else _KQL_ESCAPES.get(match[0], match[0]),
        text[1:-1],
    )
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def kql(text):
    """Return a predicate over documents."""
    assert "\n" not in text, "a query bar has one line"
    tokens = Tokens(text, rf'{_KQL_STRING}|\*|[^\\():<>"*{{}}\s]+|[:()]')

    def leaf():
        field = tokens.take()
        tokens.take(":")
        if tokens.peek() == "*":
            tokens.take()
            return lambda document: field in document
        if tokens.peek() != "(":
            value = _kql_value(tokens.take())
            return lambda document: document.get(field) == value
        tokens.take()
        values = {_kql_value(tokens.take())}
        while tokens.take("or", ")") == "or":
            values.add(_kql_value(tokens.take()))
        return lambda document: document.get(field) in values

    return _condition(tokens, ("or", "and", "not"), leaf)
