"""Train a world model on a dataset file.

    python -m training.train --env pusht --data data/pusht.h5 --objective qqworld --out runs/pusht-qqworld
    torchrun --nproc-per-node 4 -m training.train …        several devices or hosts train as one

Stopped at any moment, the same command goes on bit for bit. The run folder holds config.json, metrics.jsonl,
training.png and checkpoint.safetensors.
"""

import torch.distributed

from envs.errors import parse_command_line, run
from training.command import conduct, say
from training.config import Config
from training.phases.trainer import Trainer


def main(arguments: list[str] | None = None) -> int:
    trainer = Trainer(parse_command_line(Config, __doc__, arguments), say)
    model = trainer.learner.model
    say(trainer.data.describe())
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters on {trainer.device}, from step {trainer.step}")
    try:
        return conduct(trainer)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
