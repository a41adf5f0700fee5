"""Wrong use of the Python package ends in exceptions with a clear text, never in a crash."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

from support import images, np, temporary

import ridgeline as rl

try:
    import torch
except ImportError:
    torch = None


def in_child(queue, session):
    """Uses a session of the parent process, and the library."""
    pixels, labels = images(4)
    texts = []
    for body in (lambda: session.step(pixels, labels), lambda: rl.model("mlp").describe()):
        try:
            body()
            texts.append("no error")
        except rl.Error as error:
            texts.append(str(error))
    queue.put(texts)


class Arrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = rl.model("mlp").session(batch=4)
        cls.pixels, cls.labels = images(4)

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def refuses(self, words, pixels, labels):
        with self.assertRaisesRegex(rl.Error, words):
            self.session.step(pixels, labels)

    def test_wrong_arrays(self):
        x, y = self.pixels, self.labels
        self.refuses("images: has type float64; uint8 is wanted", x.astype(float), y)
        self.refuses(r"images: has shape \(3, 1, 28, 28\); \(4, 1, 28, 28\) is wanted", x[:3], y)
        self.refuses("one after another", x[:, :, :, ::-1], y)
        self.refuses("one after another", np.broadcast_to(x[:1], x.shape), y)
        self.refuses(r"labels: has shape \(3,\)", x, y[:3])
        self.refuses("labels: has type float64", x, y.astype(float))
        self.refuses("label 10: must be between 0 and 9", x, np.array([0, 1, 2, 10]))
        self.refuses("numbers of classes are wanted", x, np.array([0, 1, 2, -1]))
        self.refuses("numbers of classes are wanted", x, np.array([0, 1, 2, 1 << 40]))
        self.refuses("images: has type", "images", y)
        self.refuses("images: has type object|is no array", [[1], [1, 2]], y)
        for rate in (-1.0, float("nan"), float("inf")):
            with self.assertRaisesRegex(rl.Error, "learning rate"):
                self.session.step(x, y, lr=rate)
        # After all of them it still works.
        self.assertGreater(self.session.step(x, y), 0)

    def test_tensors_of_other_devices(self):
        class Elsewhere:
            device = "cuda:0"

            def __dlpack__(self, **_):
                raise AssertionError("must not be asked")

            def __dlpack_device__(self):
                return (2, 0)

        self.refuses("images: lies on cuda:0; copy it to the CPU first", Elsewhere(), self.labels)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_tensors(self):
        self.refuses("images: has type float32", torch.zeros(4, 1, 28, 28), self.labels)
        self.refuses("one after another", torch.zeros(4, 1, 28, 28, dtype=torch.uint8).transpose(2, 3), self.labels)

    def test_wrong_weights(self):
        with self.assertRaisesRegex(rl.Error, "no weights 'fc9.weight'; it has fc1.weight"):
            self.session.set_weights({"fc9.weight": np.zeros(1, np.float32)})
        with self.assertRaisesRegex(rl.Error, r"fc2.bias: has shape \(9,\)"):
            self.session.set_weights({"fc2.bias": np.zeros(9, np.float32)})
        with self.assertRaisesRegex(rl.Error, "keep_gradients"):
            self.session.gradients()
        with self.assertRaisesRegex(rl.Error, "training images: has type float64"):
            rl.train("mlp", self.pixels.astype(float), self.labels)
        with self.assertRaisesRegex(rl.Error, "the network was made for 32"):
            rl.train(rl.model("mlp", image=32), self.pixels, self.labels)


class Requests(unittest.TestCase):
    def refuses(self, words, body):
        with self.assertRaisesRegex(rl.Error, words):
            body()

    def test_wrong_requests(self):
        self.refuses("unknown model 'resnet19'", lambda: rl.model("resnet19").describe())
        self.refuses("unknown key 'bath'; did you mean 'batch'", lambda: rl.model("mlp").describe(bath=1))
        self.refuses("threads: \"two\" is not a whole number", lambda: rl.model("mlp").describe(threads="two"))
        self.refuses("must be at least 1|must be between 1", lambda: rl.model("mlp").session(batch=0))
        self.refuses("native does not compute in fp64",
                     lambda: rl.model("mlp").session(precision="fp64", backend="native"))
        self.refuses("--precision", lambda: rl.model("mlp").session(precision="fp128"))
        self.refuses("lr|finite", lambda: rl.model("mlp").session(lr=float("nan")))
        self.refuses("no value for an option", lambda: rl.model("mlp").describe(batch=object()))
        self.refuses("hidden", lambda: rl.model("mlp", hidden=-1).describe())
        self.refuses("nowhere.onnx", lambda: rl.onnx("nowhere.onnx").describe())
        self.refuses("ends with .onnx", lambda: rl.onnx("network.pt"))
        self.refuses("network: ", lambda: rl.onnx(b"no network"))
        self.refuses("must not be empty or contain", lambda: rl.onnx(b"x", name="a/b"))
        self.refuses("either images and labels, or data", lambda: rl.train("mlp"))
        self.refuses("different image sizes", lambda: rl.bench([rl.model("mlp", image=32), rl.model("mlp")]))

    def test_kinds(self):
        with self.assertRaises(rl.Error) as caught:
            rl.model("resnet50").session(batch=100_000_000 // 48)
        self.assertEqual(caught.exception.kind, "lacks memory")
        self.assertIn("too little memory", str(caught.exception))

    def test_stores(self):
        with temporary() as folder:
            path = pathlib.Path(folder) / "x.db"
            self.refuses("x.db", lambda: rl.Store(path).runs())
            path.write_text("no database")
            self.refuses("x.db", lambda: rl.Store(path).runs())
            store = rl.Store(path)
            store.close()
            self.refuses("the store is closed", store.runs)
            self.refuses("the store is closed", lambda: rl.roofline(store))
            self.refuses("frames 'excel'", lambda: rl.Store(path, frames="excel"))


class Handles(unittest.TestCase):
    def test_closed_sessions(self):
        session = rl.model("mlp").session(batch=4)
        session.close()
        session.close()
        pixels, labels = images(4)
        for body in (lambda: session.step(pixels, labels), lambda: session.logits(pixels), session.weights, session.plan):
            with self.assertRaisesRegex(rl.Error, "the session is closed"):
                body()

    def test_a_session_that_is_closed_while_another_thread_computes(self):
        pixels, labels = images(64)
        for _ in range(3):
            session, texts = rl.model("mnist_cnn").session(batch=64), []

            def steps():
                try:
                    while True:
                        session.step(pixels, labels)
                except rl.Error as error:
                    texts.append(str(error))

            thread = threading.Thread(target=steps)
            thread.start()
            time.sleep(0.05)
            session.close()
            thread.join(60)
            self.assertEqual(texts, ["the session is closed"])

    def test_two_threads_in_one_session(self):
        pixels, labels = images(64, (3, 64, 64))
        texts, done = [], threading.Event()
        with rl.model("resnet18", image=64, classes=10).session(batch=64) as session:

            def use(body):
                try:
                    body()
                except rl.Error as error:
                    texts.append(str(error))
                    done.set()

            def steps():
                for _ in range(20):
                    if not done.is_set():
                        use(lambda: session.step(pixels, labels))

            thread = threading.Thread(target=steps)
            thread.start()
            while thread.is_alive() and not done.is_set():
                use(lambda: session.logits(pixels[:1]))
            thread.join()
        self.assertEqual(texts[:1], ["the session is in use by another thread"])

    def test_python_goes_on_while_the_engine_computes(self):
        pixels, labels = images(64, (3, 64, 64))
        with rl.model("resnet18", image=64, classes=10).session(batch=64) as session:
            thread = threading.Thread(target=lambda: session.step(pixels, labels))
            thread.start()
            turns = 0
            while thread.is_alive():
                turns += 1
                time.sleep(0.001)
            thread.join()
        self.assertGreater(turns, 3)

    def test_forked_processes(self):
        session = rl.model("mlp").session(batch=4)
        pixels, labels = images(4)
        session.step(pixels, labels)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=in_child, args=(queue, session))
        child.start()
        texts = queue.get(timeout=60)
        child.join(60)
        self.assertEqual(child.exitcode, 0)
        for text in texts:
            self.assertRegex(text, "was forked from one that had used Ridgeline")
        session.step(pixels, labels)
        session.close()


class Interruptions(unittest.TestCase):
    def test_what_a_callback_raises_ends_the_training(self):
        pixels, labels = images(64)

        def burn(_):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            rl.train("mlp", pixels, labels, epochs=1000, batch=32, on_epoch=burn)

    def test_ctrl_c_ends_a_training_with_what_it_reached(self):
        script = """
import os, signal, numpy as np, ridgeline as rl
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
x, y = np.zeros((64, 1, 28, 28), np.uint8), np.arange(64) % 10
def told(epoch):
    if epoch["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGINT)
result = rl.train("mlp", x, y, epochs=1000000, batch=32, on_epoch=told)
print("epochs", result["interrupted"], 2 <= len(result["epochs"]) < 1000)
try:
    os.kill(os.getpid(), signal.SIGINT)
    print("no interruption")
except KeyboardInterrupt:
    print("as usual again")
"""
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
        self.assertEqual(told.stdout.split("\n")[:2], ["epochs True True", "as usual again"])


if __name__ == "__main__":
    unittest.main()
