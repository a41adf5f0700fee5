"""Train convolutional networks and measure where time, memory and energy go.

>>> import ridgeline as rl
>>> net = rl.model("mlp", hidden=32)
>>> net.describe(batch=64)["parameters"]
25450
>>> with net.session(batch=4) as session:
...     loss = session.step(np.zeros((4, 1, 28, 28), np.uint8), [0, 1, 2, 3])
>>> loss > 0
True

Everything is computed by ``libridgeline.so``; Python's lock is free meanwhile. docs/python.md tells more.
"""

from ._display import Document, Figure, Table
from ._lab import bench, compare, device, exhibits, profile, report, roofline, studies, study, train
from ._library import Error, program, version
from ._networks import Network, from_torch, model, models, onnx
from ._session import Session, epoch_order
from ._store import Store

__version__ = version().split()[0]
__all__ = ["Document", "Error", "Figure", "Network", "Session", "Store", "Table", "bench", "compare", "device",
           "epoch_order", "exhibits", "from_torch", "model", "models", "onnx", "profile", "program", "report",
           "roofline", "studies", "study", "train", "version"]
