"""The dataset file: HDF5 in the flat layout of LeWM and stable-worldmodel, laid out whole before the first episode.

All columns are contiguous and have their final size from the start, so episodes are written in place with plain
`pwrite` calls, in any order and by any process, and nothing that happens to a writer can damage the file's structure.
The length of an episode is written after everything else of it: an episode of length 0 is not there yet, and a file
that was never finished is still a readable dataset.
"""

import contextlib
import errno
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from envs.errors import BadInput


@dataclass(frozen=True)
class Layout:
    """How large a dataset is: episodes of `rows` rows, one picture, one action row and one state each."""

    episodes: int
    rows: int
    size: int
    action: int
    state: int
    proprio: int

    def columns(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Name to shape and type of every column."""
        total = self.episodes * self.rows
        return {
            "pixels": ((total, self.size, self.size, 3), "|u1"),
            "action": ((total, self.action), "<f4"),
            "state": ((total, self.state), "<f8"),
            "proprio": ((total, self.proprio), "<f4"),
            "ep_idx": ((total,), "<i8"),
            "step_idx": ((total,), "<i8"),
            "ep_offset": ((self.episodes,), "<i8"),
            "ep_len": ((self.episodes,), "<i8"),
        }


def create(path: Path, layout: Layout, attributes: dict[str, Any]) -> None:
    """Lay out an empty dataset at `path`, with its space on the disk reserved; all or nothing."""
    temporary = path.with_name(path.name + ".new")
    try:
        with h5py.File(temporary, "w", libver=("earliest", "v110")) as file:
            for name, value in attributes.items():
                file.attrs[name] = value
            for name, (shape, kind) in layout.columns().items():
                plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                plan.set_obj_track_times(False)  # the same data shall be the same bytes
                space, tid = h5py.h5s.create_simple(shape), h5py.h5t.py_create(np.dtype(kind))
                h5py.h5d.create(file.id, name.encode(), tid, space, plan)
        with open(temporary, "r+b") as raw:
            if hasattr(os, "posix_fallocate"):  # a full disk shall be met now, not after hours
                os.posix_fallocate(raw.fileno(), 0, os.fstat(raw.fileno()).st_size)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(error, path) from error


def disk_error(error: OSError, path: Path) -> BadInput:
    """The one sentence for a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = shutil.disk_usage(path.parent).free
        return BadInput(
            f"no room for {path}: {free / 1e9:.2f} GB are free there; make room and run the same command again"
        )
    return BadInput(f"cannot write {path}: {error.strerror or error}")


def open_checked(path: Path) -> h5py.File:
    """A dataset file opened for reading; what is not one is refused in one sentence."""
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise BadInput(f"cannot read {path} as HDF5: it is truncated, damaged or of another kind") from error
    missing = [name for name in ("pixels", "action", "state", "ep_len", "ep_offset") if name not in file]
    if missing:
        file.close()
        raise BadInput(f"{path} is no dataset of ours: it has no column '{missing[0]}'")
    return file


class Writer:
    """Writes episodes of a laid-out dataset in place."""

    def __init__(self, path: Path, layout: Layout):
        with open_checked(path) as file:
            self._offsets = {name: file[name].id.get_offset() for name in layout.columns()}
        self._layout, self._path = layout, path
        self._descriptor = os.open(path, os.O_RDWR)

    def write(self, episode: int, **columns: np.ndarray) -> None:
        """Put the columns of one episode `(rows, ...)` in their place; its length last, which makes it count."""
        rows = self._layout.rows
        steps = np.arange(rows)
        whole = columns | {"step_idx": steps, "ep_idx": np.full_like(steps, episode)}
        try:
            for name, values in whole.items():
                self._put(name, episode * rows, values)
            self._put("ep_offset", episode, np.array([episode * rows]))
            self._put("ep_len", episode, np.array([rows]))
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _put(self, name: str, row: int, values: np.ndarray) -> None:
        shape, kind = self._layout.columns()[name]
        data = np.ascontiguousarray(values, dtype=kind)
        if data.shape[1:] != shape[1:]:
            raise ValueError(f"column {name} has rows of shape {shape[1:]}, got {data.shape[1:]}")
        position = self._offsets[name] + row * int(np.prod(shape[1:], dtype=int)) * data.itemsize
        view = memoryview(data.tobytes())
        while view:
            written = os.pwrite(self._descriptor, view, position)
            view, position = view[written:], position + written

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def finished(path: Path) -> np.ndarray:
    """Which episodes of a dataset are complete: bool `(episodes,)`."""
    with open_checked(path) as file:
        return file["ep_len"][:] > 0


def differences(path: Path, attributes: dict[str, Any]) -> list[str]:
    """In what a dataset's attributes differ from `attributes`, as readable phrases."""
    with open_checked(path) as file:
        there = {name: file.attrs.get(name) for name in attributes}
    return [f"{name} is {there[name]} there, not {value}" for name, value in attributes.items() if there[name] != value]


def as_json(value: Any) -> str:
    """JSON with one spelling for equal values."""
    return json.dumps(value, sort_keys=True)
