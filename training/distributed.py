"""Several processes act as one: ranks, statistics and gradients are those of the whole batch.

With one process nothing here does anything. With several (`torchrun`), every rank gathers all latents and computes the
same regulariser on them; DDP's average of the gradients is then the gradient of one process with the whole batch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def start(device: torch.device) -> None:
    """Join the other processes if `torchrun` started this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")


def world() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Which of them this one is; `torchrun` says so before they have joined."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))


def wait() -> None:
    """Go on when all processes have come here: the others can then read what one of them wrote."""
    if world() > 1:
        dist.barrier()


@contextmanager
def main_process_first() -> Iterator[None]:
    """What is inside is done by the main process before the others do it and find what it wrote."""
    if rank() != 0:
        wait()
    yield
    if rank() == 0:
        wait()


def mean(values: Tensor) -> Tensor:
    """The average over ranks, without gradient."""
    if world() > 1:
        values = values.detach().clone()
        dist.all_reduce(values)
        values /= world()
    return values


def gather(values: Tensor) -> Tensor:
    """The values `(B, …)` of all ranks, one after another, `(world * B, …)`, with gradient."""
    return _Gather.apply(values) if world() > 1 else values


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        parts = [torch.empty_like(values) for _ in range(world())]
        dist.all_gather(parts, values.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return _summed(gradient).chunk(world())[rank()]


class _Sum(torch.autograd.Function):
    """The sum over ranks; its gradient is the sum of the ranks' gradients."""

    @staticmethod
    def forward(ctx, values):
        return _summed(values)

    @staticmethod
    def backward(ctx, gradient):
        return _summed(gradient)


def _summed(values: Tensor) -> Tensor:
    values = values.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(values)
    return values


class GlobalBatchNorm(_BatchNorm):
    """BatchNorm over the batch of all ranks, on any device; torch's own SyncBatchNorm needs a GPU."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or world() == 1:
            return super().forward(input)
        axes = [0, *range(2, input.dim())]
        shape = [1, -1, *(1 for _ in axes[1:])]
        count = world() * input.numel() // input.shape[1]
        average = _Sum.apply(input.sum(axes)) / count
        centred = input - average.view(shape)
        variance = _Sum.apply(centred.square().sum(axes)) / count
        with torch.no_grad():
            self.running_mean.lerp_(average, self.momentum)
            self.running_var.lerp_(variance * count / max(count - 1, 1), self.momentum)
            self.num_batches_tracked += 1
        return centred * (torch.rsqrt(variance + self.eps) * self.weight).view(shape) + self.bias.view(shape)


def globalise(module: nn.Module) -> nn.Module:
    """Replace every BatchNorm inside `module` by one over all ranks; parameters and state-dict names stay."""
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d):
            whole = GlobalBatchNorm(child.num_features, child.eps, child.momentum)
            whole.load_state_dict(child.state_dict())
            whole.requires_grad_(child.weight.requires_grad)
            setattr(module, name, whole)
        else:
            globalise(child)
    return module
