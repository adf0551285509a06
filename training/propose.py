"""Train proposals on a trained world model: a small network that says which actions lead from one latent to another.

    python -m training.propose --run runs/pusht-qqworld --data data/pusht.h5

The world model stays as it is; every frame is encoded once and kept in its run folder. The result is a folder
`proposals` in there, which `python -m export` puts into the model's file. Stopped at any moment, the same command goes
on bit for bit.
"""

from envs.errors import parse_command_line, run
from training.command import conduct, say
from training.phases.proposal_trainer import ProposalConfig, ProposalTrainer


def main(arguments: list[str] | None = None) -> int:
    trainer = ProposalTrainer(parse_command_line(ProposalConfig, __doc__, arguments))
    parameters = sum(parameter.numel() for parameter in trainer.network.parameters())
    say(f"{parameters:,} parameters on {trainer.device}, from step {trainer.step}, {len(trainer.hindsight)} frames")
    return conduct(trainer)


if __name__ == "__main__":
    run(main)
