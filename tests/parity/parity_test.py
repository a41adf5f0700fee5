"""Trains mlp and mnist_cnn in PyTorch from the weights and batches that Ridgeline used and compares
the losses step by step. usage: parity_test.py FOLDER_OF_TOOLS"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 50
TOLERANCE = 1e-4  # relative, at every step
# Rounding can tip a near tie in a max pool, after which losses drift apart on any two programs. The
# data must not be of that kind: PyTorch in float has to stay this near to PyTorch in double.
CONDITION = 1e-5


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(784, 10)
        self.fc2 = torch.nn.Linear(10, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class MnistCnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3)
        self.conv2 = torch.nn.Conv2d(8, 16, 3)
        self.fc1 = torch.nn.Linear(400, 128)
        self.fc2 = torch.nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def torch_losses(folder, manifest, dtype):
    model = {"mlp": Mlp, "mnist_cnn": MnistCnn}[manifest["model"]]()
    weights = {}
    for parameter in manifest["parameters"]:
        values = np.fromfile(folder / parameter["file"], dtype=np.float32)
        weights[parameter["name"]] = torch.from_numpy(values.reshape(parameter["shape"]))
    model.load_state_dict(weights)
    model = model.to(dtype)
    rate = manifest["learning_rate"]
    if manifest["optimizer"] == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    pixels = np.fromfile(folder / "images.u8", dtype=np.uint8).reshape(-1, 1, 28, 28)
    images = torch.from_numpy(pixels.astype(np.float32) / 255)
    images = ((images - manifest["mean"]) / manifest["deviation"]).to(dtype)
    labels = torch.from_numpy(np.fromfile(folder / "labels.i32", dtype=np.int32)).long()
    batch = manifest["batch"]
    losses = []
    for step in range(manifest["steps"]):
        rows = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def worst_difference(losses, expected):
    assert len(losses) == len(expected) == STEPS
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


def datasets():
    yield "fashion-mnist", 0.0, 1.0
    mnist = pathlib.Path(os.environ.get("RIDGELINE_TEST_DATA", "")) / "mnist"
    if os.environ.get("RIDGELINE_TEST_DATA") and mnist.is_dir():
        yield str(mnist), 0.1307, 0.3081
    else:
        print("MNIST itself is left out: RIDGELINE_TEST_DATA names no folder that has it")


def main():
    tool = pathlib.Path(sys.argv[1]) / "parity"
    compared, failed = 0, 0
    row = "{:<14} {:<10} {:<9} {:<11} {:>9} {:>9} {:>17}"
    print(row.format("data", "model", "optimizer", "backend", "first", "last", "worst difference"))
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        for data, mean, deviation in datasets():
            for model in ("mlp", "mnist_cnn"):
                for optimizer in ("sgd", "adam"):
                    subprocess.run([tool, model, optimizer, str(STEPS), data, str(mean), str(deviation), folder],
                                   check=True)
                    manifest = json.loads((folder / "manifest.json").read_text())
                    expected = torch_losses(folder, manifest, torch.float32)
                    assert expected[-1] < expected[0], "PyTorch itself does not learn here"
                    contestants = {"torch f64": torch_losses(folder, manifest, torch.float64), **manifest["losses"]}
                    for name, losses in contestants.items():
                        worst = worst_difference(losses, expected)
                        good = worst <= (CONDITION if name == "torch f64" else TOLERANCE)
                        compared, failed = compared + 1, failed + (not good)
                        print(row.format(pathlib.Path(data).name, model, optimizer, name, f"{losses[0]:.6f}",
                                         f"{losses[-1]:.6f}", f"{worst:.2e}" + ("" if good else " FAILED")))
    print(f"PyTorch {torch.__version__}, {STEPS} steps of the same weights and batches, relative tolerance {TOLERANCE:.0e}")
    print(f"{compared - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
