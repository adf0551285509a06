"""Train a world model on a dataset file.

    python -m training.train --env pusht --data data/pusht.h5 --objective qqworld --out runs/pusht-qqworld
    torchrun --nproc-per-node 4 -m training.train …        several devices or hosts train as one

Stopped at any moment, the same command goes on bit for bit. The run folder holds config.json, metrics.jsonl,
training.png and checkpoint.safetensors.
"""

import signal
import sys
from typing import Any

import torch.distributed
import tyro
from tqdm import tqdm

from envs.errors import run
from training.config import Config
from training.phases.trainer import Diverged, Trainer


def say(text: str) -> None:
    """One line for the person at the terminal, above the progress bar."""
    tqdm.write(text, file=sys.stderr)


def conduct(trainer: Any) -> int:
    """Run a trainer to its end or to an interrupt, say what came of it, and return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: trainer.stop())
    try:
        measured = trainer.run()
    except Diverged as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if trainer.step < trainer.config.steps:
        say(f"stopped at step {trainer.step}: run the same command again to go on")
        return 130
    say(f"finished at step {trainer.step}: " + ", ".join(f"{name} {value:.3g}" for name, value in measured.items()))
    return 0


def main(arguments: list[str] | None = None) -> int:
    config = tyro.cli(Config, description=__doc__, args=arguments, config=(tyro.conf.OmitArgPrefixes,))
    trainer = Trainer(config, say)
    model = trainer.learner.model
    say(trainer.data.describe())
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters on {trainer.device}, from step {trainer.step}")
    try:
        return conduct(trainer)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(main)
