"""What the tests of the Python package share."""

import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77

try:
    import numpy as np
except ImportError:
    print("NumPy is not installed")
    sys.exit(SKIPPED)


def images(count, image=(1, 28, 28), seed=0):
    """Random pixels and labels of ten classes."""
    random = np.random.default_rng(seed)
    return (random.integers(0, 256, (count, *image), dtype=np.uint8), random.integers(0, 10, count, dtype=np.int32))


def write_idx(path, array):
    """An IDX file, as MNIST comes."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(header + array.tobytes())


def write_dataset(folder, pixels, labels):
    """MNIST's files: train and test parts are the same."""
    for part in ("train", "t10k"):
        write_idx(folder / f"{part}-images-idx3-ubyte", pixels[:, 0])
        write_idx(folder / f"{part}-labels-idx1-ubyte", labels.astype(np.uint8))


def command(*words, cwd=None):
    """Runs the program; gives its standard output."""
    program = os.environ["RIDGELINE_PROGRAM"]
    return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True, cwd=cwd).stdout


def temporary():
    """A folder that goes away."""
    return tempfile.TemporaryDirectory()


def read_safetensors(path):
    """The float32 tensors of a .safetensors file."""
    import json
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        begin, end = (8 + length + offset for offset in about["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(about["shape"])
    return tensors
