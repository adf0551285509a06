"""Torch networks of a latent world model: encoder, action encoder, predictor, and the world model that joins them;
proposals of actions on its latents.

`models.build("compact", action_dim=2)` builds a network, `models.build("compact", action_dim=2, latent=64)` one with a
setting of the preset changed.
"""

from models.presets import PRESETS, Compact, CompactTransformer, Paper, build, settings
from models.proposal_network import Proposals
from models.world_model import WorldModel

__all__ = ["PRESETS", "Compact", "CompactTransformer", "Paper", "Proposals", "WorldModel", "build", "settings"]
