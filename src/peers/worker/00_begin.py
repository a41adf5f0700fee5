#!/usr/bin/env python3
"""Trains networks in other frameworks, so that Ridgeline can be held against them.

As a child of Ridgeline it is asked by JSON lines on standard input and answers on standard output (docs/peers.md). It also
runs alone, on a machine without Ridgeline, and writes a file that `ridgeline store import` takes:

    python3 worker.py --alone --models resnet18,mobilenet_v2 --peers torch-mps,torch-cpu --batch 64 --out mac.json

Peers: torch-cpu, torch-cuda, torch-mps (options behind a plus: torch-cuda+amp+channels_last), numpy and cupy for mlp, numba-cpu
and numba-cuda for mnist_cnn and mlp, tensorflow for mnist_cnn and mlp. Frameworks are loaded only when they are asked for.

A step is the whole of training one batch: bytes to numbers, forward, backward, update. The batch lies on the device already.
Every clock is read after waiting for the device. Python 3.8 or newer."""

import argparse
import contextlib
import fnmatch
import gc
import hashlib
import importlib.util
import json
import math
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

ZOO = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2", "squeezenet1_0", "squeezenet1_1",
       "densenet121", "densenet161", "densenet169", "densenet201")
DEFAULTS = {"mlp": {"hidden": "10", "depth": "1", "activation": "relu"},
            "mnist_cnn": {"filters": "8,16", "kernel": "3", "hidden": "128", "blocks": "0", "activation": "relu"},
            "mobilenet_v2": {"dropout": "0.2"}, "squeezenet1_0": {"dropout": "0.5"}, "squeezenet1_1": {"dropout": "0.5"}}
ACTIVATIONS = ("relu", "relu6", "leaky_relu", "sigmoid", "tanh", "silu")
LEAKY_SLOPE = 0.01
TORCH_OPTIONS = ("eager", "channels_last", "amp", "compile", "cuda-graph")
PEERS = {"torch-cpu": ("eager", "channels_last", "amp", "compile"), "torch-cuda": TORCH_OPTIONS,
         "torch-mps": ("eager", "channels_last", "amp", "compile"), "numpy": (), "cupy": (), "numba-cpu": (),
         "numba-cuda": (), "tensorflow": ()}
MODULES = {"torch": ("torch", "numpy"), "numpy": ("numpy",), "cupy": ("cupy", "numpy"), "numba": ("numba", "numpy"),
           "tensorflow": ("tensorflow", "numpy")}
clock = time.perf_counter


class Unavailable(Exception):
    """This peer does not do that; the message says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


