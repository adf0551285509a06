"""From latents to pictures: the nearest stored frame, or the simulator's own state."""

import numpy as np

import envs
from agent.viewer.frame import View
from agent.viewer.latent_images import NoImages, StoredFrames, make_latent_images
from tests.agent.viewer.playing import playback
from tests.analytic_world import PixelRoomWorld

PIXELS = "tests.analytic_world:PixelRoomWorld"


def test_the_nearest_stored_frame_looks_like_the_latent():
    task = envs.make("two-room")
    stored = StoredFrames(PixelRoomWorld(None))
    stored.wait(60)
    wanted = np.stack([task.start(np.random.default_rng(seed)) for seed in range(20)])
    found = stored.states(wanted).states  # a latent of this world is the position
    assert np.median(np.linalg.norm(found - wanted, axis=1)) < 16
    assert stored.note() == "nearest of 400 stored frames"
    assert stored.latents().shape == (400, 2)
    stored.close()


def test_what_was_seen_becomes_a_stored_frame():
    run = playback(model=PIXELS, steps=3, episodes=1)
    run.renderer.latent_images.wait(60)
    for record in run.sequence:
        run.show([record], View())
    nearest = run.renderer.latent_images.states(record.thought.latent[None]).states[0]
    np.testing.assert_array_equal(nearest, record.state)
    run.close()


def test_the_simulator_imagines_states_exactly():
    run = playback(steps=6, episodes=1)
    records = list(run.sequence)
    imagined = make_latent_images(run.sequence.agent.model).states(records[0].thought.plan.latents).states
    np.testing.assert_array_equal(imagined[0], records[5].state)


def test_a_model_is_shown_by_stored_frames_unless_its_latents_hold_the_state():
    images = make_latent_images(PixelRoomWorld(None))
    assert isinstance(images, StoredFrames)
    images.close()
    assert isinstance(make_latent_images(None), NoImages)
