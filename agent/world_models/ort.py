"""ONNX Runtime sessions: which device really runs them, and entry points with buffers of their own."""

import contextlib
import io
import os
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from envs.errors import BadInput

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
NAMES = {"cpu": "CPU", "cuda": "CUDA", "tensorrt": "TensorRT"}
MAX_PACKED_BYTES = 640 * 1024**2
MAX_SHAPES = 8
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

    def open(self, model: bytes, weight_bytes: int, threads: int) -> ort.InferenceSession:
        """A session of `model`, whose operators read `weight_bytes` of weights and use `threads` each.

        All sessions get the device that the first got.
        """
        if self.device == "cpu":
            try:
                return ort.InferenceSession(model, self._options(weight_bytes, threads), providers=[PROVIDERS["cpu"]])
            except Exception as error:  # ONNX Runtime's own classes share no other base
                raise BadInput(f"ONNX Runtime cannot load the model: {first_line(error)}") from error
        wanted = "cuda" if self.device == "auto" else self.device
        session = self._try(wanted, model, weight_bytes, threads)
        if session is None and self.device != "auto":
            raise BadInput(
                f"ONNX Runtime cannot use {NAMES[wanted]} on this machine: install the NVIDIA libraries that it needs, "
                "or use --device cpu"
            )
        self.device = wanted if session else "cpu"
        return session or self.open(model, weight_bytes, threads)

    def __str__(self) -> str:
        return f"{NAMES[self.device]}, {self.threads} threads" if self.device == "cpu" else NAMES[self.device]

    def _try(self, device: str, model: bytes, weight_bytes: int, threads: int) -> ort.InferenceSession | None:
        """A session on `device`, or None: that a provider is listed, or asked for, does not mean that it works."""
        if PROVIDERS[device] not in ort.get_available_providers():
            return None
        ort.set_default_logger_severity(SILENT)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                ort.preload_dlls()
            session = ort.InferenceSession(
                model, self._options(weight_bytes, threads), providers=_with_options(device), enable_fallback=0
            )
        except (RuntimeError, ValueError, OSError):
            return None
        finally:
            ort.set_default_logger_severity(ERRORS)
        return session if PROVIDERS[device] in session.get_providers() else None

    def _options(self, weight_bytes: int, threads: int) -> ort.SessionOptions:
        options = ort.SessionOptions()
        options.log_severity_level = ERRORS
        options.intra_op_num_threads = threads
        # Planning which of thousands of values may share a buffer takes longer than a second and gains nothing.
        options.enable_mem_reuse = False
        # Threads that wait by spinning gain little alone and lose much beside a window (docs/runtime-bench.md).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if weight_bytes > MAX_PACKED_BYTES:  # every operator would keep a packed copy of its weights
            options.add_session_config_entry("session.disable_prepacking", "1")
        return options


def first_line(error: Exception) -> str:
    """The beginning of what ONNX Runtime says, which can go on for pages."""
    return f"{error} ".splitlines()[0][:200]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _with_options(device: str) -> list[Any]:
    cuda = (PROVIDERS["cuda"], {"enable_cuda_graph": "1", "cudnn_conv_algo_search": "HEURISTIC"})
    if device == "cuda":
        return [cuda, PROVIDERS["cpu"]]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "qqworld" / "tensorrt"
    engines = {"trt_engine_cache_enable": "1", "trt_engine_cache_path": str(cache), "trt_cuda_graph_enable": "1"}
    return [(PROVIDERS["tensorrt"], engines), (PROVIDERS["cuda"], {}), PROVIDERS["cpu"]]


class EntryPoint:
    """One output of a model, computed in buffers that stay where they are from call to call.

    Buffers live on the session's device, one set for each of the last few shapes. An input that has not changed since
    the last call is not copied again, so that a context goes to the device once for a whole plan, and fixed addresses
    let CUDA record a shape's kernels once and replay them. With several `workers`, each computes its share of the rows:
    on a CPU that keeps all cores busy without making them wait for each other after every operator.
    """

    def __init__(self, session: ort.InferenceSession, device: str, output: str, workers: int = 1):
        self._session, self._output = session, output
        self._device = "cpu" if device == "cpu" else "cuda"
        self._inputs = [value.name for value in session.get_inputs()]
        self._buffers: OrderedDict[tuple[Any, ...], _Buffers] = OrderedDict()
        self._shapes_seen = 0
        self._lock = threading.Lock()
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=output) if workers > 1 else None

    def __call__(self, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """The output, of this shape, for `arrays`; those that the entry point does not read are left out."""
        rows = shape[0]
        parts = max(1, min(self._workers, rows // LEAST_ROWS))
        bounds = np.linspace(0, rows, parts + 1).astype(int)
        result = np.empty(shape, np.float32)

        def compute(part: int) -> None:
            own = slice(bounds[part], bounds[part + 1])
            # An array with another number of rows is a context that all rows share.
            given = {name: arrays[name][own] if len(arrays[name]) == rows else arrays[name] for name in self._inputs}
            result[own] = self._run(given, (bounds[part + 1] - bounds[part], *shape[1:]), part)

        with self._lock:
            if self._pool is None or parts == 1:
                compute(0)
            else:
                list(self._pool.map(compute, range(parts)))
        return result

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
            self._buffers[key] = _Buffers(self._session, self._device, self._output, given, shape, self._shapes_seen)
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
        number: int,
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
        # A recording of kernels belongs to one set of buffers; shapes beyond the first few run without.
        self.options.add_run_config_entry("gpu_graph_id", str(number + 1 if number < MAX_SHAPES else -1))

    def fill(self, given: dict[str, np.ndarray]) -> None:
        """Copy what has changed."""
        for name, array in given.items():
            if name not in self.last or not np.array_equal(self.last[name], array):
                self.last[name] = np.array(array, order="C")
                self.inputs[name].update_inplace(self.last[name])
