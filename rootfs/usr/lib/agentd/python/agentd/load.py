"""Finds an agent's code and runs it: from a path, or from bytes that the manager has verified.

With ``AGENTD_MODULE_FD`` in the environment nothing is read from the path again: a ``.py`` module's source, or a ZIP of
a dotted module's package tree, comes from that descriptor. Then no folder of the module is importable, so an unsigned
file beside a signed one is out of reach.
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import runpy
import site
import sys
import types

#: The functions that make a module an agent with a life; a module with none of them is a script.
LIFE_CYCLE = ("init", "start", "reload", "stop")

#: The variable with the descriptor's number.
MODULE_FD = "AGENTD_MODULE_FD"


class LoadError(Exception):
    """The module cannot be found or read. Its text says which and why."""


class Source:
    """An agent's code, found and read but not yet run."""

    def __init__(self, name: str, path: str, text: str):
        """``name`` is the dotted name, or a file's path; ``path`` is what tracebacks show."""
        self.name, self.path, self.text = name, path, text
        # Tracebacks show the source that runs, whatever the file on disk has become (no time stamp: never checked).
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)

    @property
    def is_script(self) -> bool:
        """Whether no function of the life-cycle is defined at its top level. Raises ``SyntaxError``."""
        return not _defines(ast.parse(self.text, self.path).body, LIFE_CYCLE)

    def run_script(self) -> None:
        """Runs it as ``python FILE`` or ``python -m NAME`` would: as ``__main__``."""
        sys.argv = [self.path]
        if not self.name.startswith("/"):
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            return
        module = _empty_module("__main__", self.path)
        sys.modules["__main__"] = module
        exec(compile(self.text, self.path, "exec", dont_inherit=True), module.__dict__)

    def import_module(self) -> types.ModuleType:
        """Runs its top level as an import and gives the module."""
        sys.argv = [self.path]
        if not self.name.startswith("/"):
            return importlib.import_module(self.name)
        # The prefix keeps an agent called queue.py from standing in for the standard library's queue.
        name = "agent_" + os.path.basename(self.path)[: -len(".py")].replace("-", "_").replace(".", "_")
        module = _empty_module(name, self.path)
        sys.modules[name] = module
        exec(compile(self.text, self.path, "exec", dont_inherit=True), module.__dict__)
        return module


def find(name: str) -> Source:
    """Finds a module: the absolute path of a ``.py`` file, or a dotted name. Raises ``LoadError``."""
    fd = _take_descriptor()
    _clean_path(verified=fd is not None)
    if name.startswith("/"):
        if not name.endswith(".py"):
            raise LoadError(f"{name} does not end in .py")
        return Source(name, name, _decode(name, _read_path(name) if fd is None else _read_descriptor(fd)))
    if "/" in name or name.endswith(".py"):
        raise LoadError(f"{name} is neither an absolute path nor a dotted module name")
    if fd is not None:
        # Modules are read as they are imported, so the descriptor stays open; it is close-on-exec.
        sys.path.insert(0, f"/proc/self/fd/{fd}")
    return _find_dotted(name)


def _find_dotted(name: str) -> Source:
    """The source of a dotted module, found the way that import finds it (its parent packages are imported)."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise LoadError(f"module {name} is not found: {error}") from error
    if spec is None:
        raise LoadError(f"module {name} is not found in {os.pathsep.join(sys.path)}")
    if spec.submodule_search_locations is not None and spec.origin is None:
        raise LoadError(f"{name} is a namespace package with no code of its own")
    get_source = getattr(spec.loader, "get_source", None)
    text = get_source(name) if get_source else None
    if text is None or spec.origin is None:
        raise LoadError(f"module {name} has no Python source ({spec.origin})")
    return Source(name, spec.origin, text)


def _take_descriptor() -> int | None:
    """The verified module's descriptor; the variable is removed, and children do not inherit either."""
    value = os.environ.pop(MODULE_FD, None)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or int(value) < 3:
        raise LoadError(f"{MODULE_FD}={value!r} is no descriptor's number")
    try:
        os.set_inheritable(int(value), False)
    except OSError as error:
        raise LoadError(f"descriptor {value} of {MODULE_FD} is not open") from error
    return int(value)


def _clean_path(verified: bool) -> None:
    """Nothing is imported from the working directory; with verified code, nor from anybody's home."""
    unwanted = site.getusersitepackages() if verified else None
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and entry != unwanted]


def _read_descriptor(fd: int) -> bytes:
    """All of the file from its start, whatever its offset is; then closes it."""
    parts, offset = [], 0
    try:
        while part := os.pread(fd, 1 << 20, offset):
            parts.append(part)
            offset += len(part)
        os.close(fd)
    except OSError as error:
        raise LoadError(f"descriptor {fd} of {MODULE_FD} cannot be read: {error.strerror}") from error
    return b"".join(parts)


def _read_path(path: str) -> bytes:
    """The file's bytes. Only without verification."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error


def _decode(path: str, data: bytes) -> str:
    """Source text in the encoding that it declares, PEP 263."""
    try:
        return importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise LoadError(f"{path} is not text in its declared encoding: {error}") from error


def _empty_module(name: str, path: str) -> types.ModuleType:
    """A module with what an import would have set."""
    module = types.ModuleType(name)
    module.__file__ = path
    module.__builtins__ = __builtins__
    return module


def _defines(body: list[ast.stmt], names: tuple[str, ...]) -> bool:
    """Whether top-level statements, also those under if, try and with, bind one of the names to code."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            bound = [node.name]
        elif isinstance(node, ast.ImportFrom):
            bound = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute, ast.Lambda)):
            bound = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            bound = []
        if "*" in bound or any(name in names for name in bound):
            return True
        blocks = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(node, "handlers", [])]
        if isinstance(node, (ast.If, ast.Try, ast.With)) and any(_defines(block, names) for block in blocks):
            return True
    return False
