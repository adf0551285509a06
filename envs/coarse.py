"""Meshes with fewer faces, for pictures in which nobody could tell: without a GPU, faces are what a picture costs."""

import copy

import mujoco
import numpy as np

CELL = 0.008
"""Vertices that share a cube of this side become one, in metres: half a pixel of a small picture of an arm."""


def coarse(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of `model` to draw with; what it is copied from simulates as before."""
    model = copy.copy(model)
    for mesh in range(model.nmesh):
        first, corners = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        vertices = model.mesh_vert[first : first + corners]
        span = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])
        faces, normals = model.mesh_face[span], model.mesh_facenormal[span]

        _, member, cell, size = np.unique(
            np.floor(vertices / CELL), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        cell = cell.ravel()
        merged = cell[faces]
        _, distinct = np.unique(np.sort(merged, axis=1), axis=0, return_index=True)
        flat = (merged == np.roll(merged, 1, axis=1)).any(axis=1)
        kept = distinct[~flat[distinct]]
        if not len(kept):  # a mesh smaller than a cell stays as it is
            continue
        centres = np.stack([np.bincount(cell, axis) / size for axis in vertices.T], axis=1)
        vertices[member] = centres
        faces[: len(kept)], normals[: len(kept)] = member[merged[kept]], normals[kept]
        model.mesh_facenum[mesh] = len(kept)
    return model
