"""ONNX Runtime sessions: which device really runs them, and entry points with buffers of their own."""

import contextlib
import io
import os
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from agent.world_models.file.budget import MAX_SHAPES
from envs.errors import BadInput

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
NAMES = {"cpu": "CPU", "cuda": "CUDA", "tensorrt": "TensorRT"}
LEAST_ROWS = 8
SILENT, ERRORS = 4, 3


class Opener:
    """Opens sessions on one device: `cpu`, `cuda`, `tensorrt`, or `auto`, which is CUDA if a session really gets it."""

    def __init__(self, device: str, threads: int | None):
        if device not in ("auto", *PROVIDERS):
            raise BadInput(f"unknown device '{device}': choose one of auto, {', '.join(PROVIDERS)}")
        if threads is not None and not 1 <= threads <= 1024:
            raise BadInput(f"--threads must lie from 1 to 1024, got {threads}")
        self.device, self.threads = device, threads or available_cores()

    def open(self, model: bytes, name: str, threads: int, packed: bool = True) -> ort.InferenceSession:
        """A session of `model`, whose operators use `threads` each and may keep `packed` copies of their weights.

        `name` is that of no other model: what a device compiles is kept under it. All sessions get the device that the
        first got.
        """
        if self.device == "cpu":
            try:
                return ort.InferenceSession(model, _options(threads, packed), providers=[PROVIDERS["cpu"]])
            except Exception as error:  # ONNX Runtime's own classes share no other base
                raise BadInput(f"ONNX Runtime cannot load the model: {first_line(error)}") from error
        wanted = "cuda" if self.device == "auto" else self.device
        session = self._try(wanted, model, name, _options(threads, packed))
        if session is None and self.device != "auto":
            raise BadInput(
                f"ONNX Runtime cannot use {NAMES[wanted]} on this machine: install the NVIDIA libraries that it needs, "
                "or use --device cpu"
            )
        self.device = wanted if session else "cpu"
        return session or self.open(model, name, threads, packed)

    def __str__(self) -> str:
        return f"{NAMES[self.device]}, {self.threads} threads" if self.device == "cpu" else NAMES[self.device]

    def _try(self, device: str, model: bytes, name: str, options: ort.SessionOptions) -> ort.InferenceSession | None:
        """A session on `device`, or None: that a provider is listed, or asked for, does not mean that it works."""
        if PROVIDERS[device] not in ort.get_available_providers():
            return None
        ort.set_default_logger_severity(SILENT)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                ort.preload_dlls()
            session = ort.InferenceSession(model, options, providers=providers(device, name), enable_fallback=0)
        except (RuntimeError, ValueError, OSError):
            return None
        finally:
            ort.set_default_logger_severity(ERRORS)
        return session if PROVIDERS[device] in session.get_providers() else None


def _options(threads: int, packed: bool) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = ERRORS
    options.intra_op_num_threads = threads
    # Planning which of thousands of values may share a buffer takes longer than a second and gains nothing.
    options.enable_mem_reuse = False
    # Threads that wait by spinning gain little alone and lose much beside a window (docs/runtime-bench.md).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not packed:
        options.add_session_config_entry("session.disable_prepacking", "1")
    return options


def first_line(error: Exception) -> str:
    """The beginning of what ONNX Runtime says, which can go on for pages."""
    return "".join(filter(str.isprintable, f"{error} ".splitlines()[0][:200]))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def providers(device: str, name: str) -> list[Any]:
    """What ONNX Runtime is asked for on a GPU, with its options.

    TensorRT knows an engine by the names in a graph, which all our files share, so each model has a folder of its own.
    It takes a recording of kernels for that of any shape: none are made.
    """
    if device == "cuda":
        cuda = {"enable_cuda_graph": "1", "cudnn_conv_algo_search": "HEURISTIC"}
        return [(PROVIDERS["cuda"], cuda), PROVIDERS["cpu"]]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "qqworld" / "tensorrt" / name
    engines = {"trt_engine_cache_enable": "1", "trt_engine_cache_path": str(cache)}
    return [(PROVIDERS["tensorrt"], engines), (PROVIDERS["cuda"], {}), PROVIDERS["cpu"]]


class EntryPoint:
    """One output of a model, computed in buffers that stay where they are from call to call.

    Buffers live on the session's device, one set for each of the last few shapes. An input that has not changed since
    the last call is not copied again, so that a context goes to the device once for a whole plan, and fixed addresses
    let CUDA record a shape's kernels once and replay them. With several `workers`, each computes its share of the rows:
    on a CPU that keeps all cores busy without making them wait for each other after every operator. On a GPU one thread
    at a time uses the session. A call of more than `most_rows` is split.
    """

    def __init__(self, session: ort.InferenceSession, device: str, output: str, workers: int, most_rows: int):
        self._session = session
        self._output = output
        self._device = "cpu" if device == "cpu" else "cuda"
        self._records = device == "cuda"
        self._most_rows = most_rows
        self._inputs = [value.name for value in session.get_inputs()]
        self._buffers: OrderedDict[tuple[Any, ...], _Buffers] = OrderedDict()
        self._shapes_seen = 0
        self._lock = threading.Lock()
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=output) if workers > 1 else None

    def __call__(self, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """The output, of this shape, for `arrays`; those that the entry point does not read are left out."""
        rows, result = shape[0], np.empty(shape, np.float32)
        given = {name: arrays[name] for name in self._inputs}
        with self._lock:
            for first in range(0, rows, self._most_rows):
                last = min(rows, first + self._most_rows)
                parts = max(1, min(self._workers, (last - first) // LEAST_ROWS))
                bounds = np.linspace(first, last, parts + 1).astype(int).tolist()
                shares = [slice(*bounds[part : part + 2]) for part in range(parts)]
                if self._pool is None or parts == 1:
                    self._compute(given, result, shares[0], 0)
                else:
                    list(self._pool.map(partial(self._compute, given, result), shares, range(parts)))
        return result

    def _compute(self, arrays: dict[str, np.ndarray], result: np.ndarray, own: slice, part: int) -> None:
        """Fill in the rows `own` of `result`."""
        # An array with another number of rows is a context that all rows share.
        given = {name: array[own] if len(array) == len(result) else array for name, array in arrays.items()}
        result[own] = self._run(given, result[own].shape, part)

    def _run(self, given: dict[str, np.ndarray], shape: tuple[int, ...], part: int) -> np.ndarray:
        buffers = self._for_shapes(given, shape, part)
        buffers.fill(given)
        try:
            self._session.run_with_iobinding(buffers.binding, buffers.options)
        except Exception as error:
            raise BadInput(f"the model cannot be run on these inputs: {first_line(error)}") from error
        return buffers.output.numpy()

    def _for_shapes(self, given: dict[str, np.ndarray], shape: tuple[int, ...], part: int) -> "_Buffers":
        key = (part, *(array.shape for array in given.values()))
        if key not in self._buffers:
            # A recording of kernels belongs to one set of buffers; shapes beyond the first few run without.
            recording = self._shapes_seen + 1 if self._records and self._shapes_seen < MAX_SHAPES else None
            self._buffers[key] = _Buffers(self._session, self._device, self._output, given, shape, recording)
            self._shapes_seen += 1
            if len(self._buffers) > MAX_SHAPES * self._workers:
                self._buffers.popitem(last=False)
        self._buffers.move_to_end(key)
        return self._buffers[key]


class _Buffers:
    """Inputs and output of one set of shapes, bound to a session."""

    def __init__(
        self,
        session: ort.InferenceSession,
        device: str,
        output: str,
        given: dict[str, np.ndarray],
        shape: tuple[int, ...],
        recording: int | None,
    ):
        make = ort.OrtValue.ortvalue_from_shape_and_type
        self.binding = session.io_binding()
        self.inputs = {name: make(array.shape, array.dtype, device) for name, array in given.items()}
        self.output = make(shape, np.float32, device)
        self.last: dict[str, np.ndarray] = {}
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        self.binding.bind_ortvalue_output(output, self.output)
        self.options = ort.RunOptions()
        # Where there is none, -1 says so: looking for what is not said takes ONNX Runtime 28 us a call.
        self.options.add_run_config_entry("gpu_graph_id", str(recording or -1))

    def fill(self, given: dict[str, np.ndarray]) -> None:
        """Copy what has changed."""
        for name, array in given.items():
            if name not in self.last or not np.array_equal(self.last[name], array):
                self.last[name] = np.array(array, order="C")
                self.inputs[name].update_inplace(self.last[name])
