"""Computes what tests/models/zoo_facts.h says about torchvision's CNNs, from torchvision itself: parameters, entries of
the state dict and a hash of their names and shapes, multiply-accumulates of convolutions and linear layers in a forward
pass, constants of norms, probabilities of dropout and stochastic depth. Everything runs on PyTorch's device "meta",
which knows shapes alone; it needs PyTorch 2.
usage: zoo_facts.py > tests/models/zoo_facts.h && clang-format -i tests/models/zoo_facts.h"""

import warnings

import zoo_torch

torch, torchvision = zoo_torch.torch, zoo_torch.torchvision
SIZES = ((224, 224), (96, 160), (299, 299))
HEAD = """#pragma once

// What torchvision {version} says about its CNNs. Written by tests/parity/zoo_facts.py.

#include <array>
#include <cstdint>

namespace ridgeline::testing {{

struct ZooSize {{
  std::int64_t height, width;
}};
constexpr std::array<ZooSize, {count_sizes}> kZooSizes = {{{{{sizes}}}}};

// What a training step drops at random, where the probability is above 0.
struct ZooDrops {{
  std::int64_t layers;
  double probabilities;  // summed
}};

struct ZooFact {{
  const char* model;
  std::int64_t parameters;     // auxiliary heads included
  std::int64_t state_entries;  // num_batches_tracked included
  std::uint64_t state_hash;    // of the sorted "name shape" lines, num_batches_tracked left out
  std::array<std::int64_t, {count_sizes}> forward_macs;  // of evaluation, for kZooSizes
  double epsilons, momenta;  // of all norms, summed
  ZooDrops dropout, stochastic_depth;
}};

constexpr std::array<ZooFact, {count}> kZooFacts = {{{{
"""


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def forward_macs(model, height, width):
    """Multiply-accumulates of one image, counted by hooks on the modules that have any."""
    counts = []

    def convolution(module, _, output):
        counts.append(output.numel() * module.weight[0].numel())

    def linear(module, _, output):
        counts.append(output.numel() * module.in_features)

    hooks = [module.register_forward_hook(convolution if isinstance(module, torch.nn.Conv2d) else linear)
             for module in model.modules() if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))]
    model(torch.empty(1, 3, height, width, device="meta"))
    for hook in hooks:
        hook.remove()
    return sum(counts)


def drops(model, kind):
    """How many modules of this kind a training step runs, and the sum of their probabilities."""
    found = []
    hooks = [module.register_forward_hook(lambda module, *_: found.append(module.p) if module.p > 0 else None)
             for module in model.modules() if isinstance(module, kind)]
    # Inception's auxiliary head needs the largest of the sizes.
    model.train()(torch.empty(2, 3, 299, 299, device="meta"))
    model.eval()
    for hook in hooks:
        hook.remove()
    return f"{{{len(found)}, {sum(found):.12g}}}"


def norm_sum(model, constant):
    return f"{sum(getattr(module, constant, 0.0) for module in model.modules()):.12g}"


def fact(name):
    # RegNet computes its widths with tensors that must have values.
    with torch.device("cpu" if name.startswith("regnet") else "meta"):
        model = getattr(torchvision.models, name)(weights=None).eval()
    model.to("meta")
    state = model.state_dict()
    lines = sorted(f"{entry} {shape_text(value.shape)}" for entry, value in state.items()
                   if not entry.endswith("num_batches_tracked"))
    parameters = sum(value.numel() for value in model.parameters())
    macs = ", ".join(str(forward_macs(model, *size)) for size in SIZES)
    values = (f'"{name}"', parameters, len(state), f"0x{fnv1a(chr(10).join(lines)):016x}", f"{{{macs}}}",
              norm_sum(model, "eps"), norm_sum(model, "momentum"), drops(model, torch.nn.Dropout),
              drops(model, torchvision.ops.StochasticDepth))
    return "    {" + ", ".join(map(str, values)) + "},"


def shape_text(shape):
    return "x".join(map(str, shape))


def main():
    warnings.simplefilter("ignore")
    names = zoo_torch.cnn_names()
    sizes = ", ".join(f"{{{height}, {width}}}" for height, width in SIZES)
    print(HEAD.format(version=torchvision.__version__.split("+")[0], count=len(names), sizes=sizes,
                      count_sizes=len(SIZES)), end="")
    for name in names:
        print(fact(name))
    print("}};\n\n}  // namespace ridgeline::testing")


if __name__ == "__main__":
    main()
