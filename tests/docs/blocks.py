"""The code blocks of a Markdown file, what they say they print, and the scripts of tools/."""

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w[ \w]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDICES = ("news", "articles", "chunks")
_CLIENTS = {"opensearch": ("opensearchpy", "OpenSearch"), "elasticsearch": ("elasticsearch", "Elasticsearch")}


def blocks(name: str, *languages: str) -> list[str]:
    """Return the blocks in one of *languages* in the file *name*, or its section ``FILE#Heading``, in order."""
    path, _, heading = name.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [body for kind, body in _BLOCK.findall(text) if kind in languages]


def commands(name: str) -> list[list[str]]:
    """Return the arguments of each es-simhash command in the file *name*, in order."""
    lines = [line for block in blocks(name, "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("es-simhash ")]


def adapt(block: str, server) -> str:
    """Return *block* for *server*: with its address, and with its own client."""
    code = block.replace("http://localhost:9200", server.url)
    module, cls = _CLIENTS[server.product]
    for other, name in _CLIENTS.values():
        code = code.replace(f"from {other} import", f"from {module} import")
        code = re.sub(rf"{name}(?=[(,]|$)", cls, code, flags=re.MULTILINE)
    return code


@contextlib.contextmanager
def ran(name: str, server, *languages: str, runner=None):
    """
    Run the examples in the file *name* on *server*, in order and in one namespace, and provide that.

    The indices of the examples are removed before and afterwards. *runner*: runs a block; by default what it
    prints is compared with what it says.
    """
    namespace = {"__name__": "examples"}
    for index in INDICES:
        server.remove(index)
    try:
        for block in blocks(name, *(languages or ["python"])):
            (runner or run)(adapt(block, server), namespace)
        yield namespace
    finally:
        if "client" in namespace:
            namespace["client"].close()
        for index in INDICES:
            server.remove(index)


def execute(block: str, namespace: dict) -> list[str]:
    """Execute *block*, and return the lines that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README", "exec"), namespace)  # noqa: S102 -- the project's own examples
    return printed.getvalue().splitlines()


def run(block: str, namespace: dict) -> None:
    """Execute *block*, and compare what it prints with its lines that begin with ``# ->``."""
    promised = [line.removeprefix("# ->").removeprefix(" ") for line in block.splitlines() if line.startswith("# ->")]
    found = execute(block, namespace)
    if found != promised:
        raise AssertionError(f"printed {found}, not {promised}")


def load_tool(name):
    """Return a script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
