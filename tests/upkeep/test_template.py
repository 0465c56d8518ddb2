"""An index template that changes, or cannot be read, while our fields are put into it; driven by hand."""

import pytest

from es_simhash import MappingError
from es_simhash.mapping.context import Context
from es_simhash.upkeep.template import put_index_template
from tests.transport.by_hand import carry_out, scripted

TEMPLATE = {"index_patterns": ["news-*"], "created_date": "2026-01-01", "priority": 5, "template": {"settings": {}}}


class RefusedError(Exception):
    """What a client raises for a status."""

    def __init__(self, status):
        super().__init__(status)
        self.status_code = status


def answer_of(call, templates):
    """Return what a server with the template ``news`` and without indices answers; *templates*: what it reads next."""
    if call.api == "get_index_template":
        return {"index_templates": [{"name": "news", "index_template": templates.pop(0)}]}
    if call.api == "simulate_template":
        return {"template": call.arguments["body"]["template"]}
    if call.api == "put_index_template":
        return {"acknowledged": True}
    return RefusedError(404)


def drive(templates, *, failing=None):
    """Return the result and the calls; the call number *failing* is refused."""
    work = put_index_template(scripted(Context("simhash", None, lambda: 0.0)), "news", "body")
    run = carry_out(work, lambda call: answer_of(call, templates), fail_at=failing, failure=RefusedError(500))
    if run.error is not None:
        raise run.error
    return run.result, run.calls


def test_it_is_read_again_just_before_it_is_stored():
    """The request before the last one; dates that the server writes are not sent."""
    change, calls = drive([TEMPLATE] * 3)
    assert [each.api for each in calls[-2:]] == ["get_index_template", "put_index_template"]
    body = calls[-1].arguments["body"]
    assert body == change.after
    assert body.keys() == TEMPLATE.keys() - {"created_date"}
    assert (body["index_patterns"], body["priority"]) == (["news-*"], 5)


def test_one_that_somebody_else_changes_meanwhile_is_left_alone():
    with pytest.raises(MappingError, match="changed index template 'news' meanwhile"):
        drive([TEMPLATE, TEMPLATE, {**TEMPLATE, "priority": 6}])


@pytest.mark.parametrize("failing", range(9))
def test_a_failure_at_any_request_passes_through(failing):
    """Nothing is stored after it."""
    _, calls = drive([TEMPLATE] * 3)
    assert len(calls) == 9
    with pytest.raises(RefusedError):
        drive([TEMPLATE] * 3, failing=failing)
