"""Compares every network of the zoo with torchvision's module: names and shapes of parameters and running statistics,
and how they start. usage: zoo_names_test.py FOLDER_OF_TOOLS [--init A,B | all]

Names and shapes are compared for all networks. The start is compared for some of them, for all with `--init all`:
torchvision's values must be distributed as our description of them says."""

import argparse
import json
import pathlib
import subprocess
import sys

import zoo_torch

torch = zoo_torch.torch
OUR_OWN = {"mlp", "mnist_cnn"}
# One of each family that starts in its own way.
INIT = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "googlenet", "mnasnet0_5", "mobilenet_v3_small",
        "regnet_y_400mf", "resnet18", "shufflenet_v2_x0_5", "squeezenet1_1")
# Deviations of the mean and of the variance's estimate that are allowed: with thousands of tensors, some are at 4.
SIGMAS = 5.5


def named_entries(entries):
    return sorted((entry["name"], tuple(entry["shape"])) for entry in entries)


def difference(ours, theirs):
    """The first place where two lists differ, or nothing."""
    for index in range(max(len(ours), len(theirs))):
        pair = [entries[index] if index < len(entries) else "nothing" for entries in (ours, theirs)]
        if pair[0] != pair[1]:
            return f"entry {index}: {pair[0]} here, {pair[1]} in torchvision"
    return None


def wrong_start(entry, value):
    """Why torchvision's first values of a tensor are not distributed as we say; nothing where they are."""
    kind, amount, count = entry["init"], entry["amount"], value.numel()
    value = value.double()
    if kind == "constant":
        return None if torch.all(value == torch.tensor(amount).to(torch.float32)) else f"not all are {amount:g}"
    uniform = kind == "uniform"
    deviation = amount / 3**0.5 if uniform else amount
    # The fourth moment of a uniform distribution is 1.8 times the variance's square, of a normal one 3 times.
    spread = ((1.8 if uniform else 3.0) - 1.0)**0.5
    mean_error = abs(value.mean().item()) / deviation * count**0.5
    variance_error = abs((value**2).mean().item() / deviation**2 - 1.0) / spread * count**0.5
    if mean_error > SIGMAS or variance_error > SIGMAS:
        return f"deviation {value.std().item():g}, {deviation:g} here ({kind}), {count} values"
    largest = value.abs().max().item()
    # Of a thousand normal values, some lie beyond the bound of a uniform distribution of the same deviation.
    if uniform and largest > amount * (1 + 1e-6):
        return f"values up to {largest:g}, uniform within {amount:g} here"
    if not uniform and count >= 1000 and largest < 2 * deviation:
        return f"values up to {largest:g} only, normal with deviation {deviation:g} here"
    return None


def failure(name, entries, check_start):
    if check_start:
        torch.manual_seed(11)
        state = zoo_torch.built(name).state_dict()
    else:
        with zoo_torch.uninitialised():
            state = zoo_torch.built(name).state_dict()
    state = {path: value for path, value in state.items() if not path.endswith("num_batches_tracked")}
    where = difference(named_entries(entries), sorted((path, tuple(value.shape)) for path, value in state.items()))
    if where or not check_start:
        return where
    for entry in entries:
        why = wrong_start(entry, state[entry["name"]])
        if why:
            return f"{entry['name']} starts otherwise: {why}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--init", default=",".join(INIT), help="networks whose start is compared, or 'all'")
    options = parser.parse_args()
    output = subprocess.run([options.tools / "zoo_parity", "names"], check=True, capture_output=True)
    models = json.loads(output.stdout)
    names = zoo_torch.cnn_names()
    assert set(models) - OUR_OWN == set(names), set(models) ^ set(names)
    start = names if options.init == "all" else options.init.split(",")
    failed = 0
    for name in names:
        why = failure(name, models[name], name in start)
        failed += why is not None
        same = "names, shapes and start are the same" if name in start else "names and shapes are the same"
        print(f"{name:<20}{len(models[name]):>6} entries  {same if why is None else 'FAILED: ' + why}", flush=True)
    print(f"torchvision {zoo_torch.torchvision.__version__}: {len(names)} networks, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
