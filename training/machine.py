"""What this machine offers: device, cores, seeds."""

import os
from pathlib import Path

import numpy as np
import torch

from envs.errors import BadInput


def pick_device(name: str) -> torch.device:
    """`auto` takes CUDA when it is there; asking for what is not there is an error."""
    if name not in ("auto", "cpu", "cuda"):
        raise BadInput(f"unknown device '{name}': use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise BadInput("--device cuda was asked for but torch finds no CUDA device: use --device cpu")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def physical_cores() -> int:
    """Physical cores this process may use; two threads of one core do not multiply twice as fast."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else str(cpu))
    return len(cores)


def threads() -> int:
    """This process's share of the physical cores."""
    return max(1, physical_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def seed_of(*words: int) -> int:
    """One seed from several numbers, well mixed."""
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))
