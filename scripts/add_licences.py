#!/usr/bin/env python3
"""add_licences.py WHEEL: puts the licence texts of what a wheel carries into its ridgeline/licences.

Libraries that auditwheel copied into ridgeline.libs are looked up in Debian's packages. What is linked in, or comes as
headers, and the font of the drawings are listed here. Ends with an error where one of them is missing."""

import base64
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import zipfile

LINKED_IN = ["libarchive-dev", "libfmt-dev", "libtomlplusplus-dev", "nlohmann-json3-dev", "libcli11-dev", "libonnx-dev"]
FONTS = ["ridgeline/fonts/DejaVuSans.ttf", "ridgeline/fonts/DejaVuSans-Bold.ttf"]
FONT_PACKAGE = "fonts-dejavu-core"
FOLDER = "ridgeline/licences/"


def package_of(library):
    """The Debian package that holds a library, by the name that it had before auditwheel added a hash."""
    name = re.sub(r"-[0-9a-f]{8}(?=[.-])", "", library)
    for pattern in (f"*/{name}", f"*/{name.split('.so')[0]}.so*"):
        found = subprocess.run(["dpkg", "-S", pattern], capture_output=True, text=True, check=False).stdout
        for line in found.splitlines():
            if "-dev" not in line.split(":")[0] and "-dbg" not in line.split(":")[0]:
                return line.split(":")[0]
    sys.exit(f"no package holds {library} ({name})")


def texts_for(libraries, has_cuda):
    """File names and texts."""
    texts, documents = {}, pathlib.Path("/usr/share/doc")
    for package in [*LINKED_IN, FONT_PACKAGE, *map(package_of, libraries)]:
        path = documents / package / "copyright"
        if not path.exists():
            sys.exit(f"{path} is missing")
        texts[f"{package}.txt"] = path.read_bytes()
    # Debian's texts refer to these.
    pattern = rb"common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])"
    for name in {name for text in texts.values() for name in re.findall(pattern, text)}:
        path = pathlib.Path("/usr/share/common-licenses") / name.decode()
        if path.exists():
            texts[f"common-licenses/{path.name}.txt"] = path.read_bytes()
    if has_cuda:
        texts["cuda-runtime.txt"] = (
            b"The CUDA runtime library (cudart) of NVIDIA is linked in, as attachment A of the CUDA Toolkit's licence\n"
            b"allows: https://docs.nvidia.com/cuda/eula/\n"
            b"This software contains source code provided by NVIDIA Corporation.\n")
    return texts


def main():
    wheel = pathlib.Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as old:
        contents = {item: old.read(item) for item in old.infolist()}
    names = [item.filename for item in contents]
    libraries = [name.split("/")[1] for name in names if name.startswith("ridgeline.libs/") and not name.endswith("/")]
    missing = [name for name in FONTS if name not in names]
    if missing:
        sys.exit(f"the wheel lacks {', '.join(missing)}; the package {FONT_PACKAGE} has them")
    library = next(data for item, data in contents.items() if item.filename == "ridgeline/libridgeline.so")
    texts = texts_for(libraries, b"cudaLaunchKernel" in library)
    record = next(item for item in contents if item.filename.endswith(".dist-info/RECORD"))
    rows = list(csv.reader(io.StringIO(contents.pop(record).decode())))
    for name, data in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append([FOLDER + name, f"sha256={digest}", str(len(data))])
    listed = io.StringIO()
    csv.writer(listed, lineterminator="\n").writerows(rows)
    made = wheel.with_suffix(".new")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for item, data in contents.items():
            new.writestr(item, data, zipfile.ZIP_DEFLATED, 9)
        for name, data in texts.items():
            new.writestr(FOLDER + name, data)
        new.writestr(record, listed.getvalue())
    made.replace(wheel)
    print(f"{len(libraries)} libraries, {len(texts)} licence texts")


if __name__ == "__main__":
    main()
