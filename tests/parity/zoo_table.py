"""Compares all of torchvision's CNNs with the zoo and writes a table.
usage: zoo_table.py FOLDER_OF_TOOLS [--models A,B] [--parts f64,f32] [--results FILE] [--out FILE]

For each network, from weights as a trained one might have them, on the smallest images that it takes:
  inference  logits in evaluation mode: native in float32 within 1e-4 and the reference in float64 within 1e-10 of
             PyTorch in float64, as |x - exact| / |exact|. Where rounding alone costs more, as in some deep networks
             with these weights, native may be as far off as PyTorch in float32, times 3.
  training   one step in float64 on the reference, dropout and stochastic depth at 0, against PyTorch in float64: the loss
             within 1e-8, and every parameter's gradient within 1e-8 of that parameter's largest gradient.
A bias in front of a batch norm has a gradient that is zero in truth; so a bias is judged by at least a millionth of the
largest gradient of its layer's weights. Results are kept line by line: a call that was interrupted goes on where it ended."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import zoo_parity_test as zoo
import zoo_torch

torch = zoo_torch.torch
# Odd at every stage, and at least two pixels wide in the last one of most networks.
IMAGE = 33
# AlexNet's poolings and the 5x5 convolution of Inception's auxiliary head need more.
LARGER = {"alexnet": 63, "inception_v3": 299}
BATCH = 4
SMALLER_BATCH = {"inception_v3": 2, "regnet_y_128gf": 2}
LIMITS = {"inference f32": 1e-4, "inference f64": 1e-10, "loss": 1e-8, "gradients": 1e-8}
COLUMNS = ("inference f32", "PyTorch f32", "inference f64", "loss", "gradients")
ZERO_BIAS = 1e-6
INFERENCE = "native:fp32:0"  # no training step
HEAD = """# The zoo beside torchvision

`python3 tests/parity/zoo_table.py build/tools`: {versions}.
Limits: {limits}.

Weights as a trained network might have them; one batch of images; dropout and stochastic depth at 0. Errors are
relative: of logits by their norm; of the loss; of gradients by each parameter's largest gradient, the worst parameter
named. Inference in float32 is `native`'s, everything in float64 is the reference's, all against PyTorch in float64.
PyTorch's own error in float32 stands beside ours: where it is larger than the limit, three times that is the limit.

| network | parameters | image | batch | inference f32 | PyTorch f32 | inference f64 | loss | gradients | worst gradient |
|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""


def scales(gradients):
    """What a gradient's error is relative to."""
    largest = {name: np.abs(value).max() for name, value in gradients.items()}
    for name in gradients:
        weights = name[:-len("bias")] + "weight"
        if name.endswith("bias") and weights in largest:
            largest[name] = max(largest[name], ZERO_BIAS * largest[weights])
    return largest


def gradient_errors(ours, exact):
    assert ours.keys() == exact.keys()
    found = scales(exact)
    return {name: np.abs(ours[name] - value).max() / found[name] for name, value in exact.items()}


def run(tools, name, folder, image, batch, kind):
    """Lets zoo_parity compute, from lively weights; what it did, and PyTorch's step in float64."""
    tool = tools / "zoo_parity"
    entries = json.loads(subprocess.run([tool, "names", name], check=True, capture_output=True).stdout)[name]
    zoo_torch.write_weights(folder / "weights.f32", entries, zoo_torch.lively_state(name, image))
    subprocess.run([tool, name, str(image), str(batch), "1", folder, kind], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    return manifest, next(zoo.torch_run(manifest, folder, torch.float64, 1))


def compare_f64(tools, name, folder, image, batch):
    manifest, exact = run(tools, name, folder, image, batch, "f64")
    ours = next(zoo.our_steps(manifest, folder, "f64"))
    gradients = gradient_errors(ours["gradients"], exact["gradients"])
    return {"image": image, "batch": batch,
            "parameters": sum(int(np.prod(entry["shape"])) for entry in manifest["parameters"] if entry["trained"]),
            "inference f64": zoo.error_of(ours["logits"], exact["logits"]),
            "loss": abs(ours["loss"] - exact["loss"]) / abs(exact["loss"]), "gradients": max(gradients.values()),
            "worst gradient": max(gradients, key=gradients.get)}


def compare_f32(tools, name, folder, image, batch):
    manifest, exact = run(tools, name, folder, image, batch, INFERENCE)
    single = next(zoo.torch_run(manifest, folder, torch.float32, 1))
    return {"inference f32": zoo.error_of(manifest["runs"][INFERENCE]["logits"], exact["logits"]),
            "PyTorch f32": zoo.error_of(single["logits"], exact["logits"])}


PARTS = {"f64": compare_f64, "f32": compare_f32}


def compare(tools, name, part):
    with tempfile.TemporaryDirectory() as folder:
        result = PARTS[part](tools, name, pathlib.Path(folder), LARGER.get(name, IMAGE), SMALLER_BATCH.get(name, BATCH))
    return {"network": name, "part": part, **result}


def failures(result):
    limits = dict(LIMITS)
    limits["inference f32"] = max(limits["inference f32"], 3 * result.get("PyTorch f32", 0.0))
    return [key for key, limit in limits.items() if key in result and not result[key] <= limit]


def table(parts):
    """One row for each network; n/a for the part that is missing."""
    networks = {}
    for result in parts.values():
        networks.setdefault(result["network"], {}).update(result)
    versions = f"PyTorch {torch.__version__.split('+')[0]}, torchvision {zoo_torch.torchvision.__version__.split('+')[0]}"
    limits = ", ".join(f"{key} {limit:.0e}" for key, limit in LIMITS.items())
    text = HEAD.format(versions=versions, limits=limits)
    for name in sorted(networks):
        result = networks[name]
        cells = [f"{result[key]:.1e}" if key in result else "n/a" for key in COLUMNS]
        cells = [cell + (" **above**" if key in failures(result) else "") for key, cell in zip(COLUMNS, cells)]
        about = [f"{result[key]:,}" if key in result else "n/a" for key in ("parameters", "image", "batch")]
        end = [f"`{result['worst gradient']}`" if "worst gradient" in result else "n/a"]
        text += "| " + " | ".join([name, *about, *cells, *end]) + " |\n"
    bad = sum(bool(failures(result)) for result in networks.values())
    left = [name for name in zoo_torch.cnn_names() if name not in networks]
    text += f"\n{len(networks)} networks, {bad} above a limit."
    return text + (f" Not compared yet: {', '.join(left)}." if left else "") + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(zoo_torch.cnn_names()))
    parser.add_argument("--parts", default=",".join(PARTS), help="f64: inference and training; f32: inference")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("zoo_parity.jsonl"))
    parser.add_argument("--out", type=pathlib.Path, help="the table; printed where no file is given")
    options = parser.parse_args()
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    results = {(result["network"], result["part"]): result for result in map(json.loads, lines)}
    for name in options.models.split(","):
        for part in options.parts.split(","):
            if (name, part) in results:
                continue
            result = results[name, part] = compare(options.tools, name, part)
            with options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")
            print(name, {key: f"{result[key]:.1e}" for key in LIMITS if key in result}, failures(result) or "", flush=True)
    text = table(results)
    options.out.write_text(text) if options.out else print(text)
    return 1 if any(failures(result) for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
