"""Train a world model on a dataset file.

    python -m training.train --env pusht
    python -m training.train --env pusht --data data/pusht.h5 --objective lewm --out runs/pusht-lewm
    torchrun --nproc-per-node 4 -m training.train …        several devices or hosts train as one

Three phases follow one another: encoder, predictor and proposals, with the settings of recipes/TASK.toml. A flag
changes every phase that runs and has it; `--phases predictor --steps 500` changes one. Stopped at any moment, the same
command goes on bit for bit. Each phase has a folder with config.json, metrics.jsonl, training.png and
checkpoint.safetensors.
"""

import torch.distributed

from envs import recipes
from envs.errors import flag_of, parse_command_line, run
from training import distributed
from training.command import conduct, say
from training.config import Config
from training.phases.pipeline import defaults, make_trainer, phases_of


def main(arguments: list[str] | None = None) -> int:
    env = flag_of("env", arguments)
    shown = defaults("encoder", Config(env)) if env else None  # so that --help shows what would be done
    asked = parse_command_line(Config, __doc__, arguments, shown)
    phases = phases_of(asked)
    minutes = recipes.minutes(asked.env)
    try:
        for number, phase in enumerate(phases, start=1):
            distributed.wait()  # for the checkpoint that this phase reads
            config = parse_command_line(Config, __doc__, arguments, defaults(phase, asked))
            if phase == "proposals" and distributed.rank() != 0:
                continue  # a small network that one process trains
            trainer = make_trainer(phase, config, say, f"{phase}, {number} of {len(phases)}")
            say(trainer.describe())
            if later := [f"{name}, about {minutes[name]:.0f} min" for name in phases[number:] if name in minutes]:
                say(f"afterwards: {'; '.join(later)}")
            if status := conduct(trainer):
                return status
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return 0


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
