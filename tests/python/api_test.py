"""The Python package does what the program does: steps bit for bit, documents, stores, PyTorch's networks."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

from support import command, images, np, read_safetensors, temporary, write_dataset

import ridgeline as rl

try:
    import torch
except ImportError:
    torch = None


class Steps(unittest.TestCase):
    def trained_by_command(self, model, pixels, labels, *words):
        """The weights after `ridgeline train` on these samples."""
        with temporary() as folder:
            folder = pathlib.Path(folder)
            write_dataset(folder, pixels, labels)
            command("train", model, "--data", folder, "--no-store", "--checkpoint", folder / "saved", "--threads", 2,
                    *words)
            last = (folder / "saved" / "LAST").read_text().strip()
            return read_safetensors(folder / "saved" / last / "state.safetensors")

    def assert_same(self, session, expected):
        for name, value in session.weights().items():
            self.assertTrue(np.array_equal(value, expected[name]), f"{name} differs")

    def test_five_full_batches_equal_the_command_bit_for_bit(self):
        for model in ("mlp", "mnist_cnn"):
            pixels, labels = images(48)
            expected = self.trained_by_command(model, pixels, labels, "--full-batch", "--iterations", 5, "--seed", 3)
            with rl.model(model).session(batch=48, seed=3, threads=2) as session:
                for _ in range(5):
                    session.step(pixels, labels)
                self.assert_same(session, expected)

    def test_an_epoch_of_five_batches_equals_the_command_bit_for_bit(self):
        pixels, labels = images(80)
        expected = self.trained_by_command("mnist_cnn", pixels, labels, "--epochs", 1, "--batch", 16, "--optimizer",
                                           "adam", "--lr", 0.002)
        with rl.model("mnist_cnn").session(batch=16, optimizer="adam", lr=0.002, threads=2) as session:
            order = rl.epoch_order(80, seed=0, epoch=0)
            for first in range(0, 80, 16):
                rows = order[first:first + 16]
                session.step(pixels[rows], labels[rows])
            self.assert_same(session, expected)

    def test_another_learning_rate_gives_other_weights(self):
        pixels, labels = images(8)
        results = []
        for rate in (0.1, 0.2, 0.0):
            with rl.model("mlp").session(batch=8) as session:
                before = session.weights()["fc1.weight"]
                session.step(pixels, labels, lr=rate)
                results.append(session.weights()["fc1.weight"])
        self.assertFalse(np.array_equal(results[0], results[1]))
        self.assertTrue(np.array_equal(before, results[2]))

    def test_logits_of_any_number_of_images(self):
        pixels, _ = images(21)
        with rl.model("mnist_cnn").session(batch=8) as small, rl.model("mnist_cnn").session(batch=21) as large:
            np.testing.assert_allclose(small.logits(pixels), large.logits(pixels), rtol=1e-5, atol=1e-5)

    def test_weights_go_from_one_session_to_another(self):
        pixels, labels = images(8)
        with rl.model("mlp").session(batch=8, seed=1) as a, rl.model("mlp").session(batch=8, seed=2) as b:
            a.step(pixels, labels)
            self.assertFalse(np.array_equal(a.logits(pixels), b.logits(pixels)))
            b.set_weights(a.weights())
            self.assertTrue(np.array_equal(a.logits(pixels), b.logits(pixels)))

    def test_weights_without_a_copy_are_the_sessions_own(self):
        pixels, labels = images(8)
        with rl.model("mnist_cnn").session(batch=8) as session, rl.model("mnist_cnn").session(batch=8) as other:
            views, before = session.weights(copy=False), session.weights()
            session.step(pixels, labels)
            for name, value in session.weights().items():
                self.assertTrue(np.array_equal(views[name], value), name)
            self.assertFalse(np.array_equal(views["fc1.bias"], before["fc1.bias"]))
            # What is written there is what evaluation and training find, the second time too.
            for factor in (0.5, 2.0):
                session.logits(pixels)
                for value in views.values():
                    value *= factor
                other.set_weights(session.weights())
                self.assertTrue(np.array_equal(session.logits(pixels), other.logits(pixels)))
            self.assertEqual(session.step(pixels, labels), other.step(pixels, labels))
            expected = session.weights()
        # The session is closed: its memory stays as long as an array lies over it.
        del session, other
        for name, value in expected.items():
            self.assertTrue(np.array_equal(views[name], value), name)

    def test_gradients_without_a_copy(self):
        pixels, labels = images(8)
        with rl.model("mlp").session(batch=8, keep_gradients=True) as session:
            views = session.gradients(copy=False)
            session.step(pixels, labels)
            for name, value in session.gradients().items():
                self.assertTrue(np.array_equal(views[name], value) and value.any(), name)

    def test_float64_through_the_reference(self):
        pixels, labels = images(8)
        with rl.model("mnist_cnn").session(batch=8, precision="fp64", keep_gradients=True) as exact, \
                rl.model("mnist_cnn").session(batch=8, keep_gradients=True) as session:
            self.assertEqual((exact.backend, session.backend), ("reference", "native"))
            weights = {name: value.astype(np.float64) for name, value in session.weights().items()}
            exact.set_weights(weights)
            self.assertEqual(exact.logits(pixels).dtype, np.float64)
            np.testing.assert_allclose(session.logits(pixels), exact.logits(pixels), rtol=1e-4, atol=1e-5)
            self.assertAlmostEqual(session.step(pixels, labels), exact.step(pixels, labels), places=5)
            for name, value in exact.gradients().items():
                self.assertEqual(value.dtype, np.float64)
                np.testing.assert_allclose(session.gradients()[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
            # A difference quotient needs the digits that float32 does not have.
            gradient, step = exact.gradients()["fc1.bias"][0], 1e-6
        losses = []
        for sign in (1, -1):
            with rl.model("mnist_cnn").session(batch=8, precision="fp64") as moved:
                moved.set_weights(weights)
                moved.weights(copy=False)["fc1.bias"][0] += sign * step
                losses.append(moved.step(pixels, labels))
        self.assertAlmostEqual((losses[0] - losses[1]) / (2 * step), gradient, places=7)

    def test_overhead_of_a_step_is_told(self):
        pixels, labels = images(1)
        with rl.model("mlp", hidden=1).session(batch=1, threads=1) as session:
            for _ in range(200):
                session.step(pixels, labels)
            start = time.perf_counter()
            for _ in range(2000):
                session.step(pixels, labels)
            each = (time.perf_counter() - start) / 2000
        print(f"a step of one sample through a hidden layer of 1 takes {each * 1e6:.1f} us, Python and work together")


TINY_STUDY = """
name = "tiny"
title = "Two batches"
question = "What does a larger batch gain?"
[[part]]
id = "speed"
title = "mlp"
command = "bench"
models = ["mlp"]
backends = ["native"]
batches = [8, 16]
max_seconds = {small = 0.2, full = 0.2}
"""


class Calls(unittest.TestCase):
    def test_describe_is_that_of_the_command(self):
        ours = rl.model("resnet18", image=64, classes=10).describe(batch=4, memory=1 << 33)
        theirs = json.loads(command("describe", "resnet18", "--image", "64", "--classes", 10, "--batch", 4, "--memory",
                                    "8GiB", "--per-layer", "--json"))
        self.assertEqual(dict(ours), theirs)
        self.assertIn("conv2d", rl.model("mnist_cnn").plan(batch=8))

    def test_models_are_those_of_the_command(self):
        self.assertEqual(dict(rl.models()), json.loads(command("models", "--json")))

    def test_a_store_from_bench_to_report(self):
        with temporary() as folder:
            store = rl.Store(pathlib.Path(folder) / "x.db", frames="dict")
            found = rl.bench(["mlp", "mnist_cnn"], batch=[8, 16], store=store, warmup=1, iterations=5, threads=1,
                             telemetry=0, label="mine")
            self.assertEqual(len(found.rows), 4)
            self.assertFalse(found["interrupted"])
            runs = store.runs()
            self.assertEqual(sorted(zip(runs["model"], runs["batch"].tolist())),
                             [("mlp", 8), ("mlp", 16), ("mnist_cnn", 8), ("mnist_cnn", 16)])
            self.assertEqual(set(runs["label"]), {"mine"})
            samples = store.samples("model=mlp,batch=8")
            measured = [seconds for seconds, kind in zip(samples["wall_seconds"], samples["kind"]) if kind == "measured"]
            row = next(row for row in found.rows if row["model"] == "mlp" and row["batch"] == 8)
            self.assertAlmostEqual(np.median(measured) * 1e3, row["p50_ms"], places=6)
            self.assertEqual(rl.compare("model=mlp,batch=8", "model=mlp,batch=16", store, force=True)["a"]["model"], "mlp")
            written = rl.report(store, pathlib.Path(folder) / "page", formats=["html", "csv"])
            self.assertTrue((pathlib.Path(folder) / "page" / "index.html").exists())
            self.assertGreater(written["tables"], 0)
            shown = rl.exhibits(store, ["throughput"])
            self.assertTrue(shown.figures and shown.figures[0]._repr_svg_().startswith("<svg"))
            self.assertIn("<svg", shown._repr_html_())
            self.assertIn("<table>", found._repr_html_())

    def test_frames_of_pandas_and_polars_hold_the_same(self):
        with temporary() as folder:
            path = pathlib.Path(folder) / "x.db"
            rl.bench("mlp", batch=[8, 16], store=path, warmup=1, iterations=3, telemetry=0)
            tried = 0
            for kind in ("pandas", "polars"):
                try:
                    __import__(kind)
                except ImportError:
                    continue
                tried += 1
                mixed = rl._store.to_frame({"a": [1, 2.5, None]}, kind)
                self.assertEqual(list(mixed["a"])[:2], [1.0, 2.5])
                for table in ("runs", "samples", "epochs", "findings"):
                    columns = getattr(rl.Store(path, "dict"), table)()
                    frame = getattr(rl.Store(path, kind), table)()
                    self.assertEqual(type(frame).__name__, "DataFrame")
                    self.assertEqual(list(frame.columns), list(columns))
                    for name, values in columns.items():
                        # Lists, in which what is not known differs: None, NaN.
                        pairs = list(zip(list(frame[name]), list(values)))
                        self.assertEqual(len(pairs), len(values))
                        for found, wanted in pairs:
                            self.assertTrue(found == wanted or (wanted != wanted and (found is None or found != found)),
                                            f"{kind} {table}.{name}: {found!r} is not {wanted!r}")
        if not tried:
            self.skipTest("neither pandas nor polars is installed")

    def test_profile_adds_up(self):
        found = rl.profile("mlp", batch=8, steps=2, no_roof=True, telemetry=0, threads=1)
        self.assertAlmostEqual(sum(row["ms"] for row in found.rows), found["step_ms"], delta=0.02 * found["step_ms"])

    def test_training_tells_its_epochs_and_stops_when_told(self):
        pixels, labels = images(96)
        with temporary() as folder:
            store = rl.Store(pathlib.Path(folder) / "x.db", frames="dict")
            told = []
            result = rl.train(rl.model("mlp"), pixels, labels, test=(pixels, labels), epochs=3, batch=32, store=store,
                              on_epoch=told.append, telemetry=0)
            self.assertEqual(told, result["epochs"])
            self.assertEqual([row["epoch"] for row in result.rows], [1, 2, 3])
            self.assertEqual(store.epochs()["train_loss"].tolist(), [row["train_loss"] for row in told])
        stopped = rl.train("mlp", pixels, labels, epochs=50, batch=32, on_epoch=lambda epoch: epoch["epoch"] < 2)
        self.assertTrue(stopped["interrupted"])
        self.assertLess(len(stopped["epochs"]), 5)

    def test_training_on_arrays_equals_training_on_files(self):
        pixels, labels = images(64)
        labels[:10] = np.arange(10)
        with temporary() as folder:
            folder = pathlib.Path(folder)
            write_dataset(folder, pixels, labels)
            files = rl.train("mlp", data=folder, epochs=2, batch=16)
        arrays = rl.train("mlp", pixels, labels, test=(pixels, labels), epochs=2, batch=16)
        for key in ("train_loss", "test_loss"):
            self.assertEqual([row[key] for row in files.rows], [row[key] for row in arrays.rows])

    def test_device_is_one_that_can_be_used(self):
        with rl.model("mlp").session(batch=4, device=rl.device()) as session:
            self.assertEqual(session.device, rl.device())

    def test_study_is_planned(self):
        planned = rl.study("quick", dry_run=True)
        self.assertTrue(planned.rows)
        self.assertNotIn("done", [item["status"] for item in planned.rows])

    def test_study_is_carried_out(self):
        with temporary() as folder:
            file, store = pathlib.Path(folder) / "tiny.toml", rl.Store(pathlib.Path(folder) / "x.db", frames="dict")
            file.write_text(TINY_STUDY)
            told = io.StringIO()
            with contextlib.redirect_stderr(told):
                found = rl.study(file, store, threads=1)
            self.assertEqual({item["key"]: item["status"] for item in found.rows},
                             {"speed/mlp/batch=8": "done", "speed/mlp/batch=16": "done"})
            self.assertRegex(told.getvalue(), r"speed/mlp/batch=8: done, [0-9.]+ m?s")
            self.assertEqual(sorted(store.runs()["batch"].tolist()), [8, 16])
            self.assertFalse(found["interrupted"])
            self.assertIn("<th>status</th>", found._repr_html_())

    def test_version_is_the_programs(self):
        self.assertEqual(command("--version").strip(), f"ridgeline {rl.version()}")

    def test_the_module_runs_the_program(self):
        told = subprocess.run([sys.executable, "-m", "ridgeline", "version"], capture_output=True, text=True, check=True)
        self.assertEqual(told.stdout.strip(), f"ridgeline {rl.version()}")


FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
# A system that has no fonts of its own.
NO_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir prefix="xdg">fonts</dir><cachedir>{}/cache</cachedir></fontconfig>"""


class Pictures(unittest.TestCase):
    def test_endings(self):
        figure = rl.model("mlp").figure()
        with temporary() as folder:
            folder = pathlib.Path(folder)
            figure.save(folder / "x.svg")
            self.assertEqual((folder / "x.svg").read_text(), figure.svg)
            with self.assertRaisesRegex(rl.Error, r"x.gif: the name of a picture ends with .svg, .png or .pdf"):
                figure.save(folder / "x.gif")
            self.assertEqual([path.name for path in folder.iterdir()], ["x.svg"])

    def saved(self, folder, name, **environment):
        """The PNG picture that another process saves."""
        script = f"import ridgeline as rl; rl.model('mlp').figure().save({str(folder / name)!r})"
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                              env={**os.environ, **{key: str(value) for key, value in environment.items()}})
        return (folder / name).read_bytes() if told.returncode == 0 else told.stderr

    def test_what_is_missing_is_said(self):
        with temporary() as folder:
            told = self.saved(pathlib.Path(folder), "x.png", PATH=folder)
            self.assertIn("x.png: rsvg-convert was not found; on Debian the package librsvg2-bin has it", told)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(shutil.which("rsvg-convert") and (FONTS / "DejaVuSans.ttf").exists(), "nothing to draw with")
    def test_a_font_beside_the_library_serves_systems_without(self):
        with temporary() as folder:
            folder = pathlib.Path(folder)
            library = folder / "libridgeline.so"
            library.symlink_to(os.environ["RIDGELINE_LIBRARY"])
            (folder / "fonts.conf").write_text(NO_FONTS.format(folder))
            bare = {"RIDGELINE_LIBRARY": library, "FONTCONFIG_FILE": folder / "fonts.conf",
                    "XDG_DATA_HOME": folder / "none", "XDG_DATA_DIRS": folder / "none"}
            boxes = self.saved(folder, "boxes.png", **bare)
            (folder / "fonts").symlink_to(FONTS)
            usual = self.saved(folder, "usual.png")
            self.assertEqual(usual[1:4], b"PNG")
            self.assertFalse(boxes == usual, "there are other fonts")
            self.assertTrue(self.saved(folder, "bare.png", **bare) == usual, "the pictures differ")
            self.assertEqual(self.saved(folder, "x.pdf", **bare)[:4], b"%PDF")


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def network(self):
        from torch import nn
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(8 * 8 * 8, 10))

    def test_outputs_and_gradients_are_pytorchs(self):
        torch.manual_seed(0)
        module, x, y = self.network(), torch.randn(6, 3, 16, 16), torch.tensor([0, 3, 9, 1, 1, 2])
        net = rl.from_torch(module, x[:2], name="mine")
        self.assertEqual(net.name, "mine")
        self.assertTrue(module.training)
        with net.session(batch=6, input="tensor", keep_gradients=True, lr=0.1, momentum=0.0) as session:
            module.eval()
            np.testing.assert_allclose(session.logits(x), module(x).detach(), rtol=1e-4, atol=1e-5)
            module.train()
            loss = torch.nn.functional.cross_entropy(module(x), y)
            loss.backward()
            self.assertAlmostEqual(session.step(x, y), loss.item(), places=5)
            gradients = session.gradients()
            for name, parameter in module.named_parameters():
                np.testing.assert_allclose(gradients[name], parameter.grad, rtol=1e-3, atol=1e-5, err_msg=name)
            torch.optim.SGD(module.parameters(), lr=0.1).step()
            for name, value in session.weights().items():
                np.testing.assert_allclose(value, module.state_dict()[name], rtol=1e-4, atol=1e-5, err_msg=name)
            session.set_weights(module.state_dict())

    def test_exporting_leaves_the_module_alone(self):
        module = self.network().eval()
        before = {key: value.clone() for key, value in module.state_dict().items()}
        rl.from_torch(module, torch.randn(2, 3, 16, 16))
        self.assertFalse(any(each.training for each in module.modules()))
        for key, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[key]), key)

    def test_networks_of_torch_are_measured_and_described(self):
        net = rl.from_torch(self.network(), torch.randn(2, 3, 16, 16), name="mine")
        self.assertEqual(net.describe()["parameters"], sum(p.numel() for p in self.network().parameters()))
        self.assertEqual(rl.bench(net, batch=4, warmup=1, iterations=3, telemetry=0).rows[0]["model"], "mine")
        self.assertIn("<svg", net._repr_svg_())

    def test_weights_are_shared_with_tensors(self):
        pixels, labels = images(4)
        with rl.model("mlp").session(batch=4) as session:
            tensor = torch.from_dlpack(session.weights(copy=False)["fc1.bias"])
            session.step(pixels, labels)
            self.assertTrue(np.array_equal(tensor.numpy(), session.weights()["fc1.bias"]))
            tensor.zero_()
            self.assertFalse(session.weights()["fc1.bias"].any())

    def test_tensors_are_taken_without_a_copy(self):
        from ridgeline._arrays import to_numpy
        tensor = torch.zeros(4, requires_grad=True)
        self.assertEqual(to_numpy(tensor, "x").ctypes.data, tensor.data_ptr())


if __name__ == "__main__":
    unittest.main()
