"""All frames of a video have one size, however large the window is."""

import imageio.v3 as imageio

from agent.viewer.frame import HEIGHT, WIDTH, View
from agent.viewer.video import Video
from tests.agent.viewer.playing import playback


def test_a_video_keeps_its_size_in_a_large_window(tmp_path):
    run = playback(episodes=1, steps=3)
    record = next(iter(run.sequence))
    run.record(Video(tmp_path / "v.mp4", 10))
    run.show([record], View(scale=1.5))
    run.close()
    assert imageio.imread(tmp_path / "v.mp4").shape[1:] == (HEIGHT, WIDTH, 3)
