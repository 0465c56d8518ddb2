"""Every example in a docstring of the library gives what it says."""

import doctest
import importlib
import inspect
import pkgutil
import re
import types

import pytest

import es_simhash
from es_simhash.errors import MissingDependencyError

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(es_simhash.__path__, "es_simhash.", onerror=lambda _: None)
    if not found.name.endswith("__main__")  # importing it runs the command line
)
PUBLIC = {name: getattr(es_simhash, name) for name in es_simhash.__all__}


def examples_of(name):
    """Return the docstrings of a module that hold examples, or skip where an extra it imports is not installed."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "es_simhash":
            raise
        pytest.skip(f"{error.name} is not installed")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    # As after `from es_simhash import *`; what a module has of its own goes first.
    found = doctest.DocTestFinder().find(module, name, globs=PUBLIC | vars(module))
    return [each for each in found if each.examples]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said = []
    for each in examples_of(name):
        runner.run(each, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


METHODS = [
    method
    for name, method in inspect.getmembers(es_simhash.SimHashClient, inspect.isfunction)
    if not name.startswith("_")
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_a_method_explains_all_of_its_arguments_or_none(method):
    """One entry may explain several arguments; without a list of them the summary does, or names another method."""
    found = re.findall(r"^    ([a-z0-9_, ]+):$", inspect.getdoc(method), re.MULTILINE)
    explained = {name for line in found for name in line.split(", ")}
    assert explained in (set(), set(inspect.signature(method).parameters) - {"self"})


@pytest.mark.parametrize("module", ["es_simhash", "es_simhash.hashing", "es_simhash.quality"])
def test_everything_public_has_a_docstring(module):
    exporting = importlib.import_module(module)
    found = [(name, getattr(exporting, name)) for name in exporting.__all__]
    for name, each in list(found):
        if inspect.isclass(each):
            found += [(f"{name}.{key}", own) for key, own in vars(each).items() if not key.startswith("_")]
    kinds = (type, property, types.FunctionType, staticmethod, classmethod)
    wanted = [name for name, each in found if isinstance(each, kinds)]
    assert len(wanted) > 15  # the look at it found something
    assert [name for name, each in found if name in wanted and not inspect.getdoc(each)] == []
