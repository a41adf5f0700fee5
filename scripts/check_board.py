#!/usr/bin/env python3
"""Reads event files with TensorBoard's own reader and prints what it finds.

  python3 -m venv /tmp/board && /tmp/board/bin/pip install tensorboard
  build/ridgeline train mnist_cnn --epochs 2 --tensorboard runs/one --json > train.json
  /tmp/board/bin/python scripts/check_board.py runs/one [train.json]

With the document of `train --json` the values of the epochs are compared with it as well: exit code 1
when one differs. TensorBoard is not needed by Ridgeline itself.
"""

import json
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, SCALARS, TENSORS

TAGS = {
    "loss/train": "train_loss",
    "accuracy/train": "train_accuracy",
    "loss/test": "test_loss",
    "accuracy/test": "test_accuracy",
    "rate/samples_per_second": "samples_per_second",
    "time/data_wait": "data_wait_seconds",
    "learning_rate": "learning_rate",
}


def print_events(events):
    for tag in sorted(events.Tags()["scalars"]):
        points = events.Scalars(tag)
        shown = ", ".join(f"{point.step}: {point.value:.6g}" for point in points[:5])
        print(f"{tag}: {len(points)} values; {shown}{', ...' if len(points) > 5 else ''}")
    for tag in events.Tags()["tensors"]:
        metadata = events.SummaryMetadata(tag)
        for event in events.Tensors(tag):
            text = b"\n".join(event.tensor_proto.string_val).decode()
            print(f"{tag} (plugin {metadata.plugin_data.plugin_name}):\n{text}")


def differences(events, document):
    epochs = document["epochs"]
    found = []
    for tag, key in TAGS.items():
        wanted = [(epoch["epoch"], float(numpy.float32(epoch[key]))) for epoch in epochs if epoch[key] is not None]
        read = [(point.step, point.value) for point in events.Scalars(tag)] if wanted else []
        if read != wanted:
            found.append(f"{tag}: {read} instead of {wanted}")
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    events = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0, TENSORS: 0})
    events.Reload()
    print_events(events)
    if len(sys.argv) == 3:
        with open(sys.argv[2], encoding="utf-8") as file:
            found = differences(events, json.load(file))
        for line in found:
            print(f"differs: {line}", file=sys.stderr)
        if found:
            sys.exit(1)
        print("all values of the epochs are those of the document")


if __name__ == "__main__":
    main()
