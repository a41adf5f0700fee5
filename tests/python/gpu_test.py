"""The Python package on a GPU: what it does on the CPU, on the device that rl.device() names."""

import pathlib
import sys
import unittest

from support import SKIPPED, command, images, np, read_safetensors, temporary, write_dataset

import ridgeline as rl

try:
    import torch
except ImportError:
    torch = None

DEVICE = rl.device()


class Steps(unittest.TestCase):
    def test_five_steps_equal_the_command_bit_for_bit(self):
        pixels, labels = images(48)
        for model in ("mlp", "mnist_cnn"):
            with temporary() as folder:
                folder = pathlib.Path(folder)
                write_dataset(folder, pixels, labels)
                command("train", model, "--data", folder, "--no-store", "--checkpoint", folder / "saved", "--device", DEVICE,
                        "--backend", "cuda", "--full-batch", "--iterations", 5, "--seed", 3)
                last = (folder / "saved" / "LAST").read_text().strip()
                expected = read_safetensors(folder / "saved" / last / "state.safetensors")
            with rl.model(model).session(batch=48, seed=3, device=DEVICE, backend="cuda") as session:
                for _ in range(5):
                    session.step(pixels, labels)
                for name, value in session.weights().items():
                    self.assertTrue(np.array_equal(value, expected[name]), f"{model}: {name} differs")

    def test_gradients_are_those_of_the_cpu(self):
        pixels, labels = images(4, (3, 64, 64))
        found = {}
        for device, backend in (("cpu", "reference"), (DEVICE, "cuda")):
            net = rl.model("resnet18", image=64, classes=10)
            with net.session(batch=4, device=device, backend=backend, keep_gradients=True, seed=1) as session:
                session.step(pixels, labels)
                found[device] = session.gradients()
        for name, exact in found["cpu"].items():
            # Batch norms over few values magnify rounding.
            distance = np.linalg.norm(found[DEVICE][name] - exact) / np.linalg.norm(exact)
            self.assertLess(distance, 2e-2, name)

    def test_memory_is_only_copied(self):
        with rl.model("mlp").session(batch=2, device=DEVICE, backend="cuda") as session:
            with self.assertRaisesRegex(rl.Error, "only copies can be had"):
                session.weights(copy=False)


class Training(unittest.TestCase):
    def test_a_network_learns(self):
        pixels, labels = images(256)
        result = rl.train("mnist_cnn", pixels, labels, epochs=3, batch=64, device=DEVICE, optimizer="adam", lr=0.002)
        losses = [epoch["train_loss"] for epoch in result["epochs"]]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def test_outputs_and_gradients_are_pytorchs(self):
        from torch import nn
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                               nn.Linear(8 * 8 * 8, 10))
        x, y = torch.randn(6, 3, 16, 16), torch.tensor([0, 3, 9, 1, 1, 2])
        net = rl.from_torch(module, x[:2], name="mine")
        with net.session(batch=6, input="tensor", keep_gradients=True, device=DEVICE, backend="cuda") as session:
            module.eval()
            np.testing.assert_allclose(session.logits(x), module(x).detach(), rtol=1e-4, atol=1e-5)
            module.train()
            loss = torch.nn.functional.cross_entropy(module(x), y)
            loss.backward()
            self.assertAlmostEqual(session.step(x, y), loss.item(), places=5)
            gradients = session.gradients()
            for name, parameter in module.named_parameters():
                np.testing.assert_allclose(gradients[name], parameter.grad, rtol=1e-3, atol=1e-5, err_msg=name)


if __name__ == "__main__":
    if DEVICE == "cpu":
        sys.exit(SKIPPED)
    unittest.main(verbosity=1)
