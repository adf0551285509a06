"""Frames into a file: what is refused, and the kinds that there are."""

import imageio.v3 as imageio
import numpy as np
import pytest

from agent.viewer.video import Video
from envs import BadInput


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("video.xyz", "give it one of the endings"), ("no/video.mp4", "the folder .*no does not exist")],
)
def test_a_video_that_cannot_be_written_is_refused(tmp_path, name, sentence):
    with pytest.raises(BadInput, match=sentence):
        Video(tmp_path / name, 10)


def test_a_video_may_be_a_gif(tmp_path):
    with Video(tmp_path / "video.gif", 10) as video:
        for shade in (0, 255):
            video.add(np.full((20, 20, 3), shade, np.uint8))
    assert len(imageio.imread(tmp_path / "video.gif")) == 2
