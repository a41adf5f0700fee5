"""Compares the modules that peers build from our graphs with torchvision's own.
usage: peer_networks_test.py FOLDER_OF_TOOLS [--models A,B | all]

Both get the same weights and images, in float64: logits in evaluation mode, the loss and every gradient of training, without
dropout, must agree within 1e-9, relative to the largest of each. One network of each family by default."""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import zoo_torch

torch = zoo_torch.torch
MODELS = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3",
          "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18",
          "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1", "vgg11_bn")
# Smaller ones would be 1x1 somewhere, where a norm has nothing to average.
IMAGE, LARGER, BATCH = 64, {"inception_v3": 299}, 2
EXACT = 1e-9
# A bias before a batch norm has a gradient that is zero in truth.
SMALLEST = 1e-6  # of the largest gradient of all


def load_worker(folder):
    """The parts of the worker as one module."""
    parts = pathlib.Path(__file__).resolve().parents[2] / "src" / "peers" / "worker"
    path = folder / "worker.py"
    path.write_text("".join(part.read_text() for part in sorted(parts.glob("*.py"))))
    spec = importlib.util.spec_from_file_location("worker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def difference(ours, theirs, floor=0.0):
    largest = max(theirs.abs().max().item(), floor)
    return (ours - theirs).abs().max().item() / largest if largest > 0 else float((ours != theirs).any())


def without_dropout(module):
    for layer in module.modules():
        if type(layer).__name__ in ("Dropout", "StochasticDepth"):
            layer.p = 0.0
    return module.double()


def loss_and_gradients(module, weights, images, labels, by_name):
    outputs = module(images)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    cross_entropy = torch.nn.functional.cross_entropy
    loss = cross_entropy(outputs[0], labels) + sum(w * cross_entropy(o, labels) for w, o in zip(weights, outputs[1:]))
    loss.backward()
    return loss.detach(), {name: value.grad for name, value in by_name.items()}


def compare(worker, document, model, size):
    """The worst differences, by what differs."""
    network, weights = worker.Network(document), zoo_torch.lively_state(model, size)
    torch.manual_seed(7)
    images, labels = torch.randn(BATCH, 3, size, size, dtype=torch.float64), torch.arange(BATCH)
    theirs = without_dropout(zoo_torch.loaded(model, weights))
    with torch.no_grad():
        ours = without_dropout(worker.TorchNetwork(torch, network, False).module(weights))
        worst = {"logits": difference(ours(images), theirs.eval()(images))}
    heads = [head["loss_weight"] for head in network.auxiliary]
    writer = worker.TorchNetwork(torch, network, True)
    ours = without_dropout(writer.module(weights))
    names = [name for name in network.parameters if network.values[name]["role"] == "parameter"]
    loss, gradients = loss_and_gradients(ours, heads, images, labels,
                                         {name: ours.get_parameter(writer.made[name].target) for name in names})
    their_loss, their_gradients = loss_and_gradients(theirs.train(), heads, images, labels, dict(theirs.named_parameters()))
    worst["loss"] = difference(loss, their_loss)
    floor = SMALLEST * max(gradient.abs().max().item() for gradient in their_gradients.values())
    worst["gradients"] = max(difference(gradients[name].reshape(their_gradients[name].shape), their_gradients[name], floor)
                             for name in names)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    models = zoo_torch.cnn_names() if options.models == "all" else options.models.split(",")
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        worker = load_worker(folder)
        for model in models:
            size, file = LARGER.get(model, IMAGE), folder / "network.json"
            command = ["describe", model, "--image", str(size), "--batch", str(BATCH), "--backend", "reference",
                       "--graph", file]
            subprocess.run([options.tools.parent / "ridgeline", *command], stdout=subprocess.DEVNULL, check=True)
            worst = compare(worker, json.loads(file.read_text()), model, size)
            good = all(error <= EXACT for error in worst.values())
            failed += not good
            shown = ", ".join(f"{what} {error:.1e}" for what, error in worst.items())
            print(f"{'ok' if good else 'FAILED':6} {model}: {shown}", flush=True)
    print(f"{len(models)} networks, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
