"""Trains mlp and mnist_cnn in PyTorch from the weights and batches that Ridgeline used and compares
the losses step by step. usage: parity_test.py FOLDER_OF_TOOLS"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 50
TOLERANCE = 1e-4  # relative, at every step


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


def torch_losses(folder, manifest):
    model = {"mlp": Mlp, "mnist_cnn": MnistCnn}[manifest["model"]]()
    weights = {}
    for parameter in manifest["parameters"]:
        values = np.fromfile(folder / parameter["file"], dtype=np.float32)
        weights[parameter["name"]] = torch.from_numpy(values.reshape(parameter["shape"]))
    model.load_state_dict(weights)
    rate = manifest["learning_rate"]
    if manifest["optimizer"] == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    pixels = np.fromfile(folder / "images.u8", dtype=np.uint8).reshape(-1, 1, 28, 28)
    images = torch.from_numpy(pixels.astype(np.float32) / 255)
    images = (images - manifest["mean"]) / manifest["deviation"]
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


def main():
    tool = pathlib.Path(sys.argv[1]) / "parity"
    worst_of_all = 0.0
    print(f"{'model':<10} {'optimizer':<9} {'backend':<10} {'first':>9} {'last':>9} {'worst difference':>17}")
    with tempfile.TemporaryDirectory() as temporary:
        for model in ("mlp", "mnist_cnn"):
            for optimizer in ("sgd", "adam"):
                folder = pathlib.Path(temporary) / f"{model}_{optimizer}"
                subprocess.run([tool, model, optimizer, str(STEPS), folder], check=True)
                manifest = json.loads((folder / "manifest.json").read_text())
                expected = torch_losses(folder, manifest)
                assert expected[-1] < expected[0], "PyTorch itself does not learn here"
                for backend, losses in manifest["losses"].items():
                    assert len(losses) == STEPS
                    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, expected))
                    worst_of_all = max(worst_of_all, worst)
                    print(f"{model:<10} {optimizer:<9} {backend:<10} {losses[0]:9.6f} {losses[-1]:9.6f} {worst:17.2e}")
    if not worst_of_all <= TOLERANCE:
        print(f"FAILED: losses differ by {worst_of_all:.2e}, more than {TOLERANCE:.0e}")
        return 1
    print(f"1 passed, 0 failed: PyTorch {torch.__version__}, {STEPS} steps, worst {worst_of_all:.2e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
