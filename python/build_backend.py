"""build_backend.py - Makes the wheel: the package, and the runtime's library where one was built.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A PEP 517 backend of its own, because the wheel is a zip of plain files: `pip install ./python` then needs nothing from elsewhere. The library is
the one that TERRACE_RT names, or that of the build folders; without one the wheel is pure Python and looks for it when it is imported. The same
files make the same bytes.
"""
import base64
import hashlib
import os
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME, VERSION = "terrace", "0.1.0"
SUMMARY = "Train embedding tables that are larger than memory, from Python and PyTorch"


def _library():
    named = os.environ.get("TERRACE_RT")
    if named:
        if not os.path.exists(named):
            sys.exit(f"TERRACE_RT names '{named}', which is not there")
        return pathlib.Path(named)
    builds = [pathlib.Path(os.environ["TERRACE_BUILD"])] if os.environ.get("TERRACE_BUILD") else []
    for build in builds + [HERE.parent / "build", HERE.parent / "build-runtime"]:
        path = build / "lib" / "libterrace-rt.so"
        if path.exists():
            return path
    return None


def _metadata():
    return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: {SUMMARY}\n" \
           "License: Apache-2.0 WITH LLVM-exception\nRequires-Python: >=3.9\nRequires-Dist: numpy\n"


def _wheel(folder, files, tag):
    """files: name in the wheel -> bytes."""
    info = f"{NAME}-{VERSION}.dist-info"
    pure = "true" if tag.endswith("any") else "false"
    files = dict(files)
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: terrace\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    license_file = HERE.parent / "LICENSE"
    if license_file.exists():
        files[f"{info}/LICENSE"] = license_file.read_bytes()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    file_name = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, file_name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return file_name


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {}
    for path in sorted((HERE / NAME).rglob("*.py")):
        files[path.relative_to(HERE).as_posix()] = path.read_bytes()
    library = _library()
    if library is not None:
        files[f"{NAME}/lib/libterrace-rt.so"] = library.read_bytes()
    return _wheel(wheel_directory, files, "py3-none-linux_x86_64" if library is not None else "py3-none-any")


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {f"__editable__.{NAME}.pth": f"{HERE}\n".encode()}, "py3-none-any")


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "."
    os.makedirs(out, exist_ok=True)
    print(os.path.join(out, build_wheel(out)))
