"""compiler.py - Runs the compiler on a spec.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The compiler is the `terrace` program: found in TERRACE_BIN (the program or its folder), in this package, in TERRACE_BUILD, in the build
folder of a checkout, or in PATH.
"""
import json
import os
import pathlib
import shutil
import subprocess

from . import _abi
from .errors import BadArgument, CompileError, NotFound


def find_compiler():
    """Path of the `terrace` program."""
    named = os.environ.get("TERRACE_BIN")
    if named:
        path = pathlib.Path(named)
        path = path / "terrace" if path.is_dir() else path
        if not path.exists():
            raise NotFound(f"TERRACE_BIN names '{named}', which is not there")
        return str(path)
    for path in [pathlib.Path(__file__).resolve().parent / "bin" / "terrace"] + [b / "bin" / "terrace" for b in _abi.build_folders()]:
        if path.exists():
            return str(path)
    found = shutil.which("terrace")
    if not found:
        raise NotFound("the compiler `terrace` was found neither in PATH nor in a build; name it in TERRACE_BIN")
    return found


def compile(spec, out=None, *, node=None, plan=None, profile=None, cpu=None, serve=False, **set):
    """Compiles a spec to a library for load(); returns its path.

    spec: a dict, the path of a YAML file, or YAML text (with a line break in it). out: default MODEL.so in the current folder. node: a
    second file with memory, target and plan. serve: a model for load(mode="serve") that has no optimizers, with rows as
    serve__dtype says ("int8"). Further keywords change keys of the spec: `**{"batch.size": 512}`, or batch__size=512.
    Raises CompileError, whose diagnostics say where.
    """
    text, name = None, None
    if isinstance(spec, dict):
        spec = {"terrace": 1, **spec}
        name = spec.get("model")
        text = _json(spec, "spec")
    elif isinstance(spec, str) and "\n" in spec:
        text = spec
    elif not isinstance(spec, (str, os.PathLike)):
        raise BadArgument(f"spec is a {type(spec).__name__}; a dict, a path or YAML text is needed")
    elif not os.path.exists(spec):
        raise NotFound(f"no spec '{os.fspath(spec)}'")
    command = [find_compiler(), "compile", "-" if text is not None else os.fspath(spec), "--emit=lib", "--json"]
    if out is None and text is not None:
        out = (name or "model") + ".so"
    for option, value in (("-o", out), ("--node", node), ("--plan", plan), ("--profile", profile), ("--cpu", cpu)):
        if value is not None:
            command += [option, os.fspath(value)]
    if serve:
        command.append("--serve")
    for key, value in set.items():
        command += ["--set", key.replace("__", ".") + "=" + (value if isinstance(value, str) else _json(value, key))]
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {}
    if done.returncode or not said.get("ok"):
        diagnostics = said.get("diagnostics", [])
        for diagnostic in diagnostics:
            if diagnostic.get("file") == "-":
                diagnostic["file"] = "spec"
        lines = [_line(d) for d in diagnostics] or [said.get("error") or (done.stderr or done.stdout).strip() or f"exit {done.returncode}"]
        raise CompileError("\n".join(lines), diagnostics)
    return said["files"][0]


def _json(value, what):
    try:
        return json.dumps(value, indent=1 if what == "spec" else None)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArgument(f"{what}: {error}; dicts, lists, numbers and strings are needed") from None


def _line(diagnostic):
    where = ":".join(str(diagnostic[k]) for k in ("file", "line", "column") if diagnostic.get(k))
    return (where + ": " if where else "") + str(diagnostic.get("message", diagnostic))
