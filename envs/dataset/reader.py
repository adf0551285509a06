"""Reads a dataset file, one of ours or a published one. Nothing here needs torch or a simulator."""

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from envs.dataset.layout import ACTION, LENGTH, OFFSET, PIXELS, STATE, Attributes, Column, Look
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
    look: Look | None = None
    """How the task was drawn, fast or paper; published files do not say."""

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
    with open_file(path) as file:
        pixels, (action, frame_skip) = column(file, PIXELS), _actions(file)
        offset, length = (column(file, which)[:].astype(np.int64) for which in (OFFSET, LENGTH))
        state = column(file, STATE)[:] if STATE.name in file else None
        _check(path, pixels, action, state, offset, length)
        about = attributes(file)
        names = tuple(about.state_names)
        if state is not None and len(names) != state.shape[1]:
            names = tuple(f"state_{i}" for i in range(state.shape[1]))
        strays = (np.arange(len(length)) % max(about.stray_every, 1) == 0) & (about.stray > 0)
        complete = length > 0
        return Dataset(
            path=Path(path),
            pixels=_mapped(pixels),
            action=action.astype(np.float32),
            state=state,
            offset=offset[complete],
            length=length[complete],
            task=about.task,
            frame_skip=frame_skip,
            state_names=names,
            strays=strays[complete],
            look=about.look,
        )


def read_actions(path: Path) -> np.ndarray:
    """Every single action taken in the dataset at `path`, float64 `(N, A)`; only the action column is needed."""
    with open_file(path) as file:
        action, frame_skip = _actions(file)
    single = action.astype(np.float64).reshape(-1, action.shape[1] // frame_skip)
    return single[~np.isnan(single).any(axis=1)]


@contextmanager
def open_file(path: Path) -> Iterator[h5py.File]:
    """A dataset file opened for reading; what is not HDF5 is refused in one sentence."""
    if not Path(path).is_file():
        raise BadInput(
            f"there is no data file {path}: collect one with `python -m envs.collect` or give another --data"
        )
    with suppress(ImportError):
        importlib.import_module("hdf5plugin")  # published files are compressed with its codec
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as error:
        raise BadInput(
            f"cannot read {path} as HDF5: it is truncated, damaged or of another kind, or needs hdf5plugin"
        ) from error


def column(file: h5py.File, which: Column) -> h5py.Dataset:
    """A column of an open file, checked against the layout."""
    link = file.get(which.name, getlink=True)
    found = file[which.name] if isinstance(link, h5py.HardLink) else None
    if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
        raise BadInput(f"{file.filename} is not a dataset: it has no column '{which.name}' of its own")
    fits = found.dtype == np.uint8 if which == PIXELS else found.dtype.kind in which.kinds
    if not fits or found.ndim != which.axes:
        raise BadInput(
            f"the column '{which.name}' of {file.filename} has {found.ndim} axes of {found.dtype}, "
            "which is not the layout"
        )
    return found


def attributes(file: h5py.File) -> Attributes:
    """What an open file says about itself."""
    try:
        return Attributes.read(file.attrs)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{file.filename} is damaged: its attributes make no sense ({error})") from error


def _actions(file: h5py.File) -> tuple[np.ndarray, int]:
    """The action column `(R, frame_skip * A)`, and how many actions there are in a row of it."""
    action, skip = column(file, ACTION)[:], attributes(file).frame_skip
    if skip < 1 or action.shape[1] == 0 or action.shape[1] % skip:
        raise BadInput(f"{file.filename} is damaged: {action.shape[1]} action numbers a row are not {skip} actions")
    return action, skip


def _check(
    path: Path,
    pixels: h5py.Dataset,
    action: np.ndarray,
    state: np.ndarray | None,
    offset: np.ndarray,
    length: np.ndarray,
) -> None:
    """Refuse columns that do not belong together."""
    rows = len(pixels)
    for which, found in ((ACTION, action), (STATE, state)):
        if found is not None and len(found) != rows:
            raise BadInput(f"{path} is damaged: it has {rows} pictures but {len(found)} rows of {which.name}")
    if pixels.shape[1] != pixels.shape[2] or pixels.shape[3] != 3:
        raise BadInput(f"the pictures in {path} are {pixels.shape[1:]}: square RGB pictures (H, H, 3) are needed")
    if len(offset) != len(length) or (length < 0).any() or (offset < 0).any() or (offset + length > rows).any():
        raise BadInput(f"{path} is damaged: an episode lies outside its {rows} rows")
    if not length.any():
        raise BadInput(f"{path} holds no complete episode: go on collecting it")


def _mapped(found: h5py.Dataset) -> np.ndarray:
    """A column as an array: mapped if it lies in the file in one plain piece, else read into memory."""
    start = found.id.get_offset()
    if start is None:
        return found[:]
    return np.memmap(found.file.filename, dtype=found.dtype, mode="r", offset=start, shape=found.shape)
