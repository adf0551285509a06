"""Writes a dataset file, which is laid out whole before the first episode.

All columns are contiguous and have their final size from the start, so episodes are written in place with plain
`pwrite` calls, in any order and by any process, and nothing that happens to a writer can damage the file's structure.
The length of an episode is written after everything else of it: an episode of length 0 is not there yet, and a file
that was never finished is still a readable dataset.
"""

import contextlib
import errno
import os
import shutil
from pathlib import Path

import h5py
import numpy as np

from envs.dataset.layout import EPISODE, LENGTH, OFFSET, STEP, Attributes, Column, Layout
from envs.dataset.reader import column, open_file
from envs.errors import BadInput


def create(path: Path, layout: Layout, attributes: Attributes) -> None:
    """Lay out an empty dataset at `path`, with its space on the disk reserved; all or nothing."""
    temporary = path.with_name(path.name + ".new")
    try:
        with h5py.File(temporary, "w", libver=("earliest", "v110")) as file:
            for name, value in attributes.stored().items():
                file.attrs[name] = value
            for each, shape in layout.shapes().items():
                plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                plan.set_obj_track_times(False)  # the same data shall be the same bytes
                space, kind = h5py.h5s.create_simple(shape), h5py.h5t.py_create(np.dtype(each.dtype))
                h5py.h5d.create(file.id, each.name.encode(), kind, space, plan)
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


class Writer:
    """Writes episodes of a laid-out dataset in place."""

    def __init__(self, path: Path, layout: Layout):
        self._path = path
        self._rows = layout.rows
        self._shapes = layout.shapes()
        with open_file(path) as file:
            self._places = {each: column(file, each).id.get_offset() for each in self._shapes}
        self._descriptor = os.open(path, os.O_RDWR)

    def write(self, episode: int, columns: dict[Column, np.ndarray]) -> None:
        """Put the columns of one episode `(rows, ...)` in their place; its length last, which makes it count."""
        first, steps = episode * self._rows, np.arange(self._rows)
        try:
            for each, values in (columns | {STEP: steps, EPISODE: np.full_like(steps, episode)}).items():
                self._put(each, first, values)
            self._put(OFFSET, episode, np.array([first]))
            self._put(LENGTH, episode, np.array([self._rows]))
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _put(self, which: Column, row: int, values: np.ndarray) -> None:
        shape = self._shapes[which][1:]
        data = np.ascontiguousarray(values, dtype=which.dtype)
        if data.shape[1:] != shape:
            raise ValueError(f"column {which.name} has rows of shape {shape}, got {data.shape[1:]}")
        position = self._places[which] + row * int(np.prod(shape, dtype=int)) * data.itemsize
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
    with open_file(path) as file:
        return column(file, LENGTH)[:] > 0


def differences(path: Path, attributes: Attributes) -> list[str]:
    """In what a dataset's attributes differ from `attributes`, as readable phrases."""
    wanted = attributes.stored()
    with open_file(path) as file:
        column(file, LENGTH)  # without columns it is not a dataset, and has no attributes to compare
        there = {name: file.attrs.get(name) for name in wanted}
    return [f"{name} is {there[name]} there, not {value}" for name, value in wanted.items() if there[name] != value]
