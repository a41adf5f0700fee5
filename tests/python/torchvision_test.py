"""rl.from_torch on torchvision's CNNs: outputs, loss and gradients are PyTorch's.
usage: torchvision_test.py [all | NAME...]"""

import copy
import sys
import warnings

from support import SKIPPED, np

import ridgeline as rl

try:
    import torch
    import torchvision
except ImportError:
    print("torchvision is not installed")
    sys.exit(SKIPPED)

# As small as PyTorch can export it: adaptive pools must divide.
NAMES = {"alexnet": 224, "resnet18": 64, "resnet34": 64, "resnet50": 64, "resnext50_32x4d": 64, "squeezenet1_1": 64,
         "mobilenet_v2": 64, "mobilenet_v3_small": 64, "densenet121": 64, "shufflenet_v2_x1_0": 64, "mnasnet0_5": 64,
         "efficientnet_b0": 64}
IN_CTEST = ["resnet18", "mobilenet_v3_small"]
BATCH, CLOSE = 4, 1e-4
# A value that rounding puts on the other side of a ReLU's corner changes gradients by a percent, in PyTorch's float32 as
# in ours. So gradients must agree with PyTorch's float64 or with its float32, for one of several seeds.
SEEDS = (1, 2, 3, 4)


def without_chance(module):
    """Neither dropout nor stochastic depth: a step is then a function of weights and images."""
    for each in module.modules():
        if hasattr(each, "p") and isinstance(each.p, float):
            each.p = 0.0
    return module


def gradients_of(module, x, y):
    """The loss of a training step, and the gradients by name."""
    loss = torch.nn.functional.cross_entropy(module.train()(x), y)
    loss.backward()
    return loss.item(), {name: parameter.grad.numpy() for name, parameter in module.named_parameters()}


def distance(found, truth):
    """The largest difference, relative to the largest element of all."""
    largest = max(np.abs(value).max() for value in truth.values())
    return max(float(np.abs(found[name] - value).max() / largest) for name, value in truth.items())


def errors(name, size, seed):
    """Of outputs in evaluation, of the loss and of the gradients of one training step,
    against float64 and against float32."""
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = without_chance(getattr(torchvision.models, name)(num_classes=10))
    x, y = torch.randn(BATCH, 3, size, size), torch.arange(BATCH)
    net, exact = rl.from_torch(module, x[:2], name=name), copy.deepcopy(module).double()
    with net.session(batch=BATCH, input="tensor", keep_gradients=True) as session:
        outputs = distance({"": session.logits(x)}, {"": exact.eval()(x.double()).detach().numpy()})
        loss, truth = gradients_of(exact, x.double(), y)
        told = abs(session.step(x, y) - loss)
        ours = session.gradients()
    return outputs, told, distance(ours, truth), distance(ours, gradients_of(module, x, y)[1])


def main():
    names = sys.argv[1:] or IN_CTEST
    names = list(NAMES) if names == ["all"] else names
    failed = []
    print(f"{'network':<20} {'outputs':>9} {'loss':>9} {'to f64':>9} {'to f32':>9}")
    for name in names:
        for seed in SEEDS:
            found = errors(name, NAMES[name], seed)
            close = max(found[:2]) <= CLOSE and min(found[2:]) <= CLOSE
            print(f"{name:<20} " + " ".join(f"{error:9.1e}" for error in found), flush=True)
            if close:
                break
        if not close:
            failed.append(name)
    print("all close" if not failed else f"too far: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
