"""Reads a dataset file: HDF5 in the flat layout of LeWM and stable-worldmodel, ours or theirs.

Rows of all episodes follow one another. Row t holds the picture, the state and the action (or `frame_skip` actions in a
row) taken from it; the row that no action leaves holds NaN. Published files have no attributes: one row is then one
control step. Nothing here needs torch.
"""

import hashlib
import importlib
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from envs.errors import BadInput

FINGERPRINT_FRAMES = 64


@dataclass(frozen=True)
class Dataset:
    """An open dataset: pictures stay on disk, mapped into memory, when the file allows it."""

    path: Path
    pixels: np.ndarray
    """uint8 `(R, H, W, 3)`."""
    action: np.ndarray
    """float32 `(R, frame_skip * action_dim)`, NaN where no action was taken."""
    state: np.ndarray | None
    """float64 `(R, S)` if the file has it."""
    offset: np.ndarray
    """First row of each complete episode, `(E,)`."""
    length: np.ndarray
    """Rows of each complete episode, `(E,)`."""
    task: str | None
    frame_skip: int
    """Control steps between two rows."""
    state_names: tuple[str, ...]
    strays: np.ndarray
    """Which complete episodes stray from the data policy, bool `(E,)`."""

    @property
    def action_dim(self) -> int:
        """Numbers in one action."""
        return self.action.shape[1] // self.frame_skip

    @property
    def image_size(self) -> int:
        """Side of the pictures in pixels."""
        return self.pixels.shape[1]

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that name the data: actions, states, lengths and a sample of the pictures."""
        digest = hashlib.sha256(str(self.pixels.shape).encode())
        rows = np.concatenate([np.arange(o, o + n) for o, n in zip(self.offset, self.length, strict=True)])
        sample = self.pixels[rows[np.linspace(0, len(rows) - 1, FINGERPRINT_FRAMES).astype(int)]]
        for values in (self.offset, self.length, self.action[rows], sample):
            digest.update(np.ascontiguousarray(values).tobytes())
        if self.state is not None:
            digest.update(np.ascontiguousarray(self.state[rows]).tobytes())
        return digest.hexdigest()[:16]

    def describe(self) -> str:
        """What is in the file, in one line."""
        rows, side = int(self.length.sum()), self.image_size
        return (
            f"{self.path}: {self.task or 'unnamed task'}, {len(self.length)} episodes, {rows} frames of {side} px, "
            f"{self.action_dim}-D actions, {self.frame_skip} control step(s) a row, fingerprint {self.fingerprint}"
        )


def open_dataset(path: Path) -> Dataset:
    """The dataset at `path`; what cannot be one is refused in one sentence."""
    path = Path(path)
    if not path.is_file():
        raise BadInput(
            f"there is no data file {path}: collect one with `python -m envs.collect` or give another --data"
        )
    with suppress(ImportError):
        importlib.import_module("hdf5plugin")  # published files are compressed with its codec
    try:
        with h5py.File(path, "r") as file:
            return _read(path, file)
    except OSError as error:
        raise BadInput(
            f"cannot read {path} as HDF5: it is truncated, damaged, of another kind or needs hdf5plugin"
        ) from error


def _read(path: Path, file: h5py.File) -> Dataset:
    pixels = _column(path, file, "pixels", "u1", 4)
    action = _column(path, file, "action", "f", 2)[:].astype(np.float32)
    offset, length = (_column(path, file, name, "iu", 1)[:].astype(np.int64) for name in ("ep_offset", "ep_len"))
    state = _column(path, file, "state", "f", 2)[:] if "state" in file else None
    rows = len(pixels)
    for name, column in (("action", action), ("state", state)):
        if column is not None and len(column) != rows:
            raise BadInput(f"{path} is damaged: it has {rows} pictures but {len(column)} rows of {name}")
    if pixels.shape[1] != pixels.shape[2] or pixels.shape[3] != 3:
        raise BadInput(f"the pictures in {path} are {pixels.shape[1:]}: square RGB pictures (H, H, 3) are needed")
    if len(offset) != len(length) or (length < 0).any() or (offset < 0).any() or (offset + length > rows).any():
        raise BadInput(f"{path} is damaged: an episode lies outside its {rows} rows")
    complete = length > 0  # a length of 0 marks an episode that is still to be collected
    if not complete.any():
        raise BadInput(f"{path} holds no complete episode: go on collecting it")
    skip = int(file.attrs.get("frame_skip", 1))
    if skip < 1 or action.shape[1] == 0 or action.shape[1] % skip:
        raise BadInput(f"{path} is damaged: {action.shape[1]} action numbers a row are not {skip} actions")
    names = json.loads(file.attrs.get("state_names", "[]"))
    if state is not None and len(names) != state.shape[1]:
        names = [f"state_{i}" for i in range(state.shape[1])]
    task = file.attrs.get("task")
    every = np.arange(len(length)) % max(int(file.attrs.get("stray_every", 1)), 1) == 0
    strays = every & (file.attrs.get("stray", 0) > 0)
    return Dataset(
        path=path,
        pixels=_mapped(path, pixels),
        action=action,
        state=state,
        offset=offset[complete],
        length=length[complete],
        task=None if task is None else str(task),
        frame_skip=skip,
        state_names=tuple(names),
        strays=strays[complete],
    )


def _column(path: Path, file: h5py.File, name: str, kinds: str, axes: int) -> h5py.Dataset:
    """A column of the file; `kinds` are the numpy kinds it may have (`u1` is uint8)."""
    link = file.get(name, getlink=True)
    column = file[name] if isinstance(link, h5py.HardLink) else None
    if not isinstance(column, h5py.Dataset) or column.is_virtual or column.external:
        raise BadInput(f"{path} is no dataset that can be read here: it has no column '{name}' of its own")
    fits = column.dtype == np.uint8 if kinds == "u1" else column.dtype.kind in kinds
    if not fits or column.ndim != axes:
        raise BadInput(
            f"the column '{name}' of {path} has {column.ndim} axes of {column.dtype}, which is not the layout"
        )
    return column


def _mapped(path: Path, column: h5py.Dataset) -> np.ndarray:
    """A column as an array: mapped if it lies in the file in one plain piece, else read into memory."""
    start = column.id.get_offset()
    if start is None:
        return column[:]
    return np.memmap(path, dtype=column.dtype, mode="r", offset=start, shape=column.shape)
