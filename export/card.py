"""The model card: what a file is, where it comes from, and how closely it follows torch."""

from agent.onnx_model import OnnxWorldModel
from export.parity import Parity


def write(file: OnnxWorldModel, name: str, size: int, precision: str, parity: Parity) -> str:
    """The card of `file` as Markdown with the front matter that model hubs read."""
    about = file.metadata
    planner = ", ".join(f"{key} {value}" for key, value in about.planner.items()) or "none stored"
    network = ", ".join(f"{key} {value}" for key, value in about.network.items())
    versions = ", ".join(f"{key} {value}" for key, value in about.versions.items())
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
| network | preset `{about.preset}`: {network} |
| objective | `{about.objective}`, {about.steps:,} steps, seed {about.seed} |
| training data | fingerprint `{about.data}` |
| planner defaults | {planner} |
| format | {about.format}, {precision}, {size:,} bytes |
| sha256 | `{file.sha256}` |
| made with | {versions}; revision `{about.revision}` |
| licence | {about.licence} |

## Parity with torch

Largest absolute difference of a latent, at most {parity.tolerance:.0e} allowed.

{comparisons}
"""
