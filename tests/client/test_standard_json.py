"""Documents as text go only to clients that would write the same text."""

import elasticsearch
import opensearchpy
import pytest

from es_simhash.client.dialects import writes_standard_json
from es_simhash.client.port import port_of

URL = "http://localhost:1"


class Elastic(elasticsearch.JsonSerializer):
    """Of a user."""


class Open(opensearchpy.serializer.JSONSerializer):
    """Of a user."""


# As the library makes it where orjson is installed: it writes a NaN as null.
OrjsonSerializer = type("OrjsonSerializer", (elasticsearch.JsonSerializer,), {"__module__": "elastic_transport"})


class Wrapper:
    """A client that shows no transport."""


@pytest.mark.parametrize(
    ("client", "is_standard"),
    [
        (elasticsearch.Elasticsearch(URL), True),
        (elasticsearch.AsyncElasticsearch(URL), True),
        (elasticsearch.Elasticsearch(URL).options(request_timeout=5), True),
        (elasticsearch.Elasticsearch(URL, serializer=Elastic()), False),
        (elasticsearch.Elasticsearch(URL, serializers={"application/x-ndjson": Elastic()}), False),
        (elasticsearch.Elasticsearch(URL, serializer=OrjsonSerializer()), False),
        (opensearchpy.OpenSearch(URL), True),
        (opensearchpy.AsyncOpenSearch(URL), True),
        (opensearchpy.OpenSearch(URL, serializer=Open()), False),
        (Wrapper(), False),
    ],
)
def test_only_the_serializers_of_the_libraries(client, is_standard):
    """One that a user gives is never passed over."""
    assert writes_standard_json(client) == is_standard
    if not isinstance(client, Wrapper):
        assert port_of(client).writes_standard_json == is_standard
