#!/usr/bin/env python3
"""Trains networks in other frameworks, so that Ridgeline can be compared with them.

As a child of Ridgeline it is asked by JSON lines on standard input and answers on standard output (docs/peers.md). It also
runs alone, on a machine without Ridgeline, and writes a file that `ridgeline store import` takes:

    python3 worker.py --alone --models resnet18,mine.json --peers torch-mps,torch-cpu --batch 64 --out mac.json

Peers: torch-cpu, torch-cuda, torch-mps (options behind a plus: torch-cuda+amp+channels_last) for every network, numpy and cupy
for mlp, numba-cpu, numba-cuda and tensorflow for mnist_cnn and mlp. Frameworks are loaded only when they are asked for.

A step is the whole of training one batch: bytes to numbers, forward, backward, update. The batch lies on the device already.
Every clock is read after waiting for the device. Python 3.8 or newer."""

import argparse
import contextlib
import gc
import hashlib
import importlib.util
import json
import math
import operator
import os
import platform
import queue
import random
import resource
import struct
import sys
import threading
import time
import traceback
import uuid

GRAPH_VERSION = 1  # of the documents that describe networks
ACTIVATIONS = ("relu", "relu6", "leaky_relu", "sigmoid", "tanh", "silu")
LEAKY_SLOPE = 0.01
TORCH_OPTIONS = ("eager", "channels_last", "amp", "compile")
PEERS = {"torch-cpu": TORCH_OPTIONS + ("torchvision",), "torch-cuda": TORCH_OPTIONS + ("cuda-graph", "torchvision"),
         "torch-mps": TORCH_OPTIONS + ("torchvision",), "numpy": (), "cupy": (), "numba-cpu": (), "numba-cuda": (),
         "tensorflow": ()}
MODULES = {"torch": ("torch", "numpy"), "numpy": ("numpy",), "cupy": ("cupy", "numpy"), "numba": ("numba", "numpy"),
           "tensorflow": ("tensorflow", "numpy")}
clock = time.perf_counter


class Unavailable(Exception):
    """This peer does not do that; the message says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


