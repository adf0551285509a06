"""The model card: what a file is, where it comes from, and how closely it follows torch."""

from agent.world_models.onnx import OnnxWorldModel
from export.parity import Parity
from export.work import naive_multiply_adds
from models import WorldModel


def write(file: OnnxWorldModel, network: WorldModel, name: str, size: int, precision: str, parity: Parity) -> str:
    """The card of `file`, made from `network`, as Markdown with the front matter that model hubs read."""
    about = file.metadata
    planner = ", ".join(f"{key} {value}" for key, value in about.planner.items()) or "none stored"
    settings = ", ".join(f"{key} {value}" for key, value in about.network.items())
    versions = ", ".join(f"{key} {value}" for key, value in about.versions.items())
    naive, ours = naive_multiply_adds(network, about.horizon), file.multiply_adds("latents_1")
    each = f"{ours / 1e6:,.1f} M a candidate over {about.horizon} blocks, {naive / 1e6:,.1f} M if written plainly"
    proposals = f"a mixture of {about.proposals} Gaussians" if about.proposals else "none"
    comparisons = "\n".join(f"- {line}" for line in parity.lines())
    return f"""---
license: {about.licence.lower()}
library_name: onnxruntime
pipeline_tag: robotics
tags: [world-model, jepa, planning, onnx, {about.task}]
---

# {name}

A latent world model of the task `{about.task}` in one ONNX file: pictures and actions in the task's own units go in,
latents come out. `python play.py --env {about.task} --model {name}` plans with it.

| | |
|---|---|
| pictures | {about.image_size} x {about.image_size} uint8, look `{about.look}` |
| actions | {about.action_dim} numbers, in blocks of {about.action_block} |
| latents | {about.latent_size} numbers; context up to {about.history}, horizon up to {about.horizon} blocks |
| network | preset `{about.preset}`: {settings} |
| objective | `{about.objective}`, {about.steps:,} steps, seed {about.seed} |
| training data | fingerprint `{about.data}` |
| proposals | {proposals} |
| planner defaults | {planner} |
| multiply-adds | {file.multiply_adds("latent") / 1e6:,.1f} M a picture; {each} |
| format | {about.format}, {precision}, {size:,} bytes |
| sha256 | `{file.sha256}` |
| made with | {versions}; revision `{about.revision}` |
| licence | {about.licence} |

## Parity with torch

Largest absolute difference of a latent (for pictures of noise, as a share of the largest), at most
{parity.tolerance:.0e} allowed.

{comparisons}
"""
