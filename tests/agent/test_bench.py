"""The bench measures what a file can do: every planner that its proposals allow, from the picture on."""

import pytest

from agent import bench
from agent.world_models.onnx import OnnxWorldModel
from tests import tiny


@pytest.mark.parametrize(("components", "planners"), [(0, {"cem"}), (2, {"cem", "guided", "propose"})])
def test_plans_are_timed_from_the_picture_on(components, planners, tmp_path):
    model = OnnxWorldModel(tiny.file(tmp_path, components=components), device="cpu")
    rows = bench.bench(model, threads=1, seconds=0.01)
    timed = {name.removeprefix("picture to plan: ") for name in rows if name.startswith("picture")}
    assert timed == planners
    assert all(rows[f"picture to plan: {name}"]["p50"] > rows["encode"]["best"] for name in planners)
    assert "picture to plan: cem" in bench.table(rows)
