"""rl.from_torch on torchvision's CNNs: outputs, loss and gradients are PyTorch's.
usage: torchvision_test.py [all | NAME...]

Judged as tests/parity/zoo_parity_test.py judges the zoo:
  f64  the reference in float64 against PyTorch in float64, where rounding plays no part: outputs, the loss and every
       parameter's gradient of one training step within 1e-8.
  f32  what the backend native errs against float64 in the gradients of a step, beside what PyTorch in float32 errs: at
       most three times as much. Outputs within 1e-4.
Errors are norms, |x - exact| / |exact|, a gradient's relative to at least 1e-6 of the norm of all gradients, because
some are zero in truth. Gradients are judged by the worst parameter: which one it is, and whether rounding tips a ReLU
over, is chance. So PyTorch's own error is the largest of its two layouts on three batches, and ours the first batch's."""

import copy
import sys
import time
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
IN_CTEST = ["mobilenet_v3_small", "shufflenet_v2_x1_0"]
BATCH, BATCHES = 4, 3
EXACT, OUTPUTS, TIMES = 1e-8, 1e-4, 3.0
SMALLEST_GRADIENT = 1e-6  # of the norm of all gradients


def without_chance(module):
    """Neither dropout nor stochastic depth: a step is then a function of weights and images."""
    for each in module.modules():
        if hasattr(each, "p") and isinstance(each.p, float):
            each.p = 0.0
    return module


class ExactHardsigmoid(torch.nn.Module):
    """PyTorch's own takes 1/6 as float32 in its gradient, in float64 too: 3e-8 away."""

    def forward(self, x):  # pylint: disable=missing-function-docstring
        return (x + 3.0).clamp(0.0, 6.0) / 6.0


def in_float64(module):
    """A copy that computes in float64 throughout."""
    module = copy.deepcopy(module).double()
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, torch.nn.Hardsigmoid):
                setattr(parent, name, ExactHardsigmoid())
    return module


def norm(value):
    return float(np.linalg.norm(np.asarray(value, np.float64).ravel()))


def error_of(value, exact, floor=0.0):
    return norm(np.asarray(value, np.float64) - exact) / max(norm(exact), floor, 1e-300)


def worst(gradients, exact):
    """The largest error of a parameter's gradient."""
    floor = SMALLEST_GRADIENT * norm([norm(value) for value in exact.values()])
    return max(error_of(gradients[name], value, floor) for name, value in exact.items())


def torch_step(module, x, y):
    """The loss of a training step, and the gradients by name; the module stays as it was."""
    module = copy.deepcopy(module).train()
    loss = torch.nn.functional.cross_entropy(module(x), y)
    loss.backward()
    return loss.item(), {name: parameter.grad.numpy() for name, parameter in module.named_parameters()}


def our_step(net, x, y, **options):
    """Outputs of evaluation, then the loss of a training step and its gradients."""
    with net.session(batch=BATCH, input="tensor", keep_gradients=True, **options) as session:
        outputs = session.logits(x)
        return outputs, session.step(x, y), session.gradients()


def judged(name, size):
    """The row of the table, and whether all is within its limits."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = without_chance(getattr(torchvision.models, name)(num_classes=10))
    batches = [torch.randn(BATCH, 3, size, size) for _ in range(BATCHES)]
    y, x = torch.arange(BATCH), batches[0]
    net, exact = rl.from_torch(module, x[:2], name=name), in_float64(module)
    outputs = copy.deepcopy(exact).eval()(x.double()).detach().numpy()

    truths = [torch_step(exact, each.double(), y) for each in batches]
    theirs = max(worst(torch_step(module.to(memory_format=layout), each, y)[1], truth[1])
                 for each, truth in zip(batches, truths)
                 for layout in (torch.contiguous_format, torch.channels_last))
    loss, gradients = truths[0]
    our_outputs, our_loss, ours = our_step(net, x.double(), y, precision="fp64")
    doubles = (error_of(our_outputs, outputs), abs(our_loss - loss) / loss, worst(ours, gradients))
    our_outputs, _, ours = our_step(net, x, y)
    singles = (error_of(our_outputs, outputs), worst(ours, gradients))
    good = max(doubles) <= EXACT and singles[0] <= OUTPUTS and singles[1] <= TIMES * theirs
    return (*doubles, *singles, theirs), good


def main():
    names = sys.argv[1:] or IN_CTEST
    names = list(NAMES) if names == ["all"] else names
    failed = []
    print(f"{'':<20} {'----------- f64 ------------':>30} {'------- f32 --------':>20} {'PyTorch':>9}")
    print(f"{'network':<20} {'outputs':>10}{'loss':>10}{'gradients':>10} {'outputs':>10}{'gradients':>10} {'f32':>9}")
    for name in names:
        start = time.monotonic()
        found, good = judged(name, NAMES[name])
        print("{:<20} {:10.1e}{:10.1e}{:10.1e} {:10.1e}{:10.1e} {:9.1e}".format(name, *found)
              + ("" if good else "  too far") + f"  {time.monotonic() - start:.0f} s", flush=True)
        if not good:
            failed.append(name)
    print("all within their limits" if not failed else f"too far: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
