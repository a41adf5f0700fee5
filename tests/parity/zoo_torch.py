"""torchvision's CNNs as the parity tests want them: built fast, without randomness, from given weights."""

import contextlib
import sys
import warnings

import numpy as np

try:
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)  # CTest's SKIP_RETURN_CODE

NO_CNNS = ("maxvit", "swin", "vit")
# Of each auxiliary loss in the sum that is trained.
AUXILIARY = {"googlenet": 0.3, "inception_v3": 0.4}
INITIALISERS = ("uniform_", "normal_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_",
                "constant_", "ones_", "zeros_")


def cnn_names():
    names = torchvision.models.list_models(module=torchvision.models)
    return [name for name in names if not name.startswith(NO_CNNS)]


@contextlib.contextmanager
def uninitialised():
    """Modules that are built within leave their parameters as they come: all are about to be overwritten."""
    kept = {name: getattr(torch.nn.init, name) for name in INITIALISERS}
    for name in INITIALISERS:
        setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(torch.nn.init, name, function)


def exact_hardsigmoid(value, inplace=False):
    """PyTorch's own has a sixth in float32 in its gradient, also for float64: an error of 3e-8."""
    return torch.nn.functional.relu6(value + 3.0) / 6.0


torch.nn.functional.hardsigmoid = exact_hardsigmoid


def built(name):
    """The module, with torchvision's initial weights, that drops nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GoogLeNet and Inception announce another initialisation
        model = getattr(torchvision.models, name)(weights=None)
    for module in model.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model


def loaded(name, arrays):
    """The module with these weights, by name."""
    with uninitialised():
        model = built(name)
    # Not load_state_dict: MNASNet's refuses dicts without a version.
    state = {path: value for path, value in model.state_dict().items() if not path.endswith("num_batches_tracked")}
    assert state.keys() == arrays.keys(), state.keys() ^ arrays.keys()
    with torch.no_grad():
        for path, value in state.items():
            assert value.shape == arrays[path].shape, path
            value.copy_(torch.from_numpy(arrays[path]))
    return model


def loss_of(name, outputs, labels):
    """Cross-entropy; of an auxiliary head's logits as well, where the module returns them."""
    cross_entropy = torch.nn.functional.cross_entropy
    if name not in AUXILIARY:
        return cross_entropy(outputs, labels)
    return cross_entropy(outputs[0], labels) + AUXILIARY[name] * sum(cross_entropy(logits, labels) for logits in outputs[1:])


# Images that running statistics are taken from. Of four, a channel's variance may be tiny by chance; in the deepest
# network evaluation then multiplies rounding errors without end.
STATISTICS_IMAGES = {"efficientnet_v2_l": 32}


def lively_state(name, size):
    """Weights by name as a trained network might have them: scales and shifts of norms are no longer 1 and 0, layer
    scales no longer tiny, and running statistics fit the activations, so that evaluation neither fades nor explodes."""
    torch.manual_seed(5)
    model = built(name)
    with torch.no_grad():
        for path, value in model.named_parameters():
            if path.endswith("layer_scale"):
                value.uniform_(0.1, 0.5)
            elif value.dim() == 1 and path.endswith("weight"):
                value.uniform_(0.5, 1.5)
            elif value.dim() == 1:
                value.normal_(0.0, 0.1)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
        model.train()(torch.randn(STATISTICS_IMAGES.get(name, 4), 3, size, size) * 1.2)
    return {path: value.numpy() for path, value in model.state_dict().items() if not path.endswith("num_batches_tracked")}


def write_weights(path, entries, arrays):
    """All entries one after the other, as zoo_parity reads them."""
    assert {entry["name"] for entry in entries} == arrays.keys()
    with open(path, "wb") as file:
        for entry in entries:
            array = arrays[entry["name"]]
            assert list(array.shape) == entry["shape"], entry
            np.ascontiguousarray(array, dtype=np.float32).tofile(file)
