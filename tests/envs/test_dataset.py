"""The dataset reader: files of ours, published ones, unfinished ones and damaged ones."""

import subprocess
import sys

import h5py
import numpy as np
import pytest

from envs.collect import Collect, collect
from envs.dataset.reader import open_dataset, read_actions
from envs.errors import BadInput
from tests.moving_dot import write


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "dot.h5", episodes=4, steps=30, side=16)


def edit(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def test_a_collected_file_opens_with_all_it_says_about_itself(path):
    data = open_dataset(path)
    assert (data.task, data.frame_skip, data.action_dim, data.image_size) == ("dot", 1, 2, 16)
    assert data.state_names == ("dot_x", "dot_y")
    assert list(data.length) == [31] * 4
    assert "4 episodes, 124 frames of 16 px" in data.describe()


def test_pictures_in_one_plain_piece_are_mapped_and_others_are_read(path):
    mapped = open_dataset(path)
    assert isinstance(mapped.pixels, np.memmap)
    pictures, fingerprint = np.array(mapped.pixels), mapped.fingerprint

    def compress(file):
        del file["pixels"]
        file.create_dataset("pixels", data=pictures, chunks=(8, 16, 16, 3), compression="gzip")

    packed = open_dataset(edit(path, compress))
    assert not isinstance(packed.pixels, np.memmap)
    np.testing.assert_array_equal(packed.pixels, pictures)
    assert packed.fingerprint == fingerprint


def test_a_published_file_without_attributes_is_one_control_step_a_row(path):
    def publish(file):
        for name in list(file.attrs):
            del file.attrs[name]
        file.move("ep_idx", "episode_idx")

    data = open_dataset(edit(path, publish))
    assert (data.task, data.frame_skip, data.action_dim) == (None, 1, 2)
    assert data.state_names == ("state_0", "state_1")


def test_the_look_is_what_the_file_says_and_unknown_where_it_does_not(path):
    assert open_dataset(path).look is None
    assert open_dataset(edit(path, lambda file: file.attrs.__setitem__("look", "paper"))).look == "paper"


def test_a_collected_file_is_read_back_as_it_was_described(tmp_path):
    collect(Collect("two-room", tmp_path / "data.h5", episodes=2, steps=10, every=5, look="paper", size=32), False)
    data = open_dataset(tmp_path / "data.h5")
    assert (data.task, data.look, data.frame_skip, data.image_size) == ("two-room", "paper", 5, 32)
    assert data.state_names == ("agent_x", "agent_y")


def test_actions_are_read_alone_one_by_one_without_those_that_were_not_taken(tmp_path):
    fine, coarse = (write(tmp_path / f"{every}.h5", episodes=3, side=8, every=every) for every in (1, 5))
    actions = read_actions(fine)
    assert (actions.shape, actions.dtype) == ((90, 2), np.float64)
    np.testing.assert_array_equal(read_actions(coarse), actions)
    action = open_dataset(fine).action
    np.testing.assert_array_equal(actions, action[~np.isnan(action).any(axis=1)])
    for name in ("pixels", "state", "ep_len", "ep_offset"):
        edit(fine, lambda file, name=name: file.__delitem__(name))
    np.testing.assert_array_equal(read_actions(fine), actions)
    with pytest.raises(BadInput, match="no column 'action' of its own"):
        read_actions(edit(fine, lambda file: file.__delitem__("action")))
    with pytest.raises(BadInput, match="there is no data file"):
        read_actions(tmp_path / "nowhere.h5")


def test_a_file_without_states_still_opens(path):
    assert open_dataset(edit(path, lambda file: file.__delitem__("state"))).state is None


def test_episodes_still_to_be_collected_are_left_out(path):
    data = open_dataset(edit(path, lambda file: file["ep_len"].__setitem__(1, 0)))
    assert list(data.offset) == [0, 62, 93]


@pytest.mark.parametrize("column", ["pixels", "action", "state", "ep_len"])
def test_the_fingerprint_changes_with_the_data(path, column):
    before = open_dataset(path).fingerprint
    assert open_dataset(path).fingerprint == before

    def touch(file):
        file[column][0] = file[column][0] - 1

    assert open_dataset(edit(path, touch)).fingerprint != before


def test_reading_data_needs_no_torch():
    code = "import sys, training.data.windows; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda file: file.__delitem__("action"), "no column 'action'"),
        (lambda file: file.__delitem__("ep_len"), "no column 'ep_len'"),
        (lambda file: file["ep_len"].__setitem__(3, 99), "an episode lies outside its 124 rows"),
        (lambda file: file["ep_offset"].__setitem__(0, -1), "an episode lies outside"),
        (lambda file: file["ep_len"].__setitem__(slice(None), 0), "no complete episode"),
        (lambda file: file.attrs.__setitem__("frame_skip", 3), "2 action numbers a row are not 3 actions"),
        (lambda file: file.attrs.__setitem__("frame_skip", "three"), "its attributes make no sense"),
        (lambda file: file.attrs.__setitem__("state_names", "dot_x"), "its attributes make no sense"),
        (lambda file: file.attrs.__setitem__("look", "pretty"), "unknown look 'pretty'"),
        (lambda file: replace(file, "pixels", np.zeros((124, 16, 16, 3), np.float32)), "4 axes of float32"),
        (lambda file: replace(file, "pixels", np.zeros((124, 16, 8, 3), np.uint8)), "square RGB"),
        (lambda file: replace(file, "action", np.zeros((9, 2), np.float32)), "124 pictures but 9 rows of action"),
        (lambda file: replace(file, "action", np.zeros(124, np.float32)), "1 axes"),
        (
            lambda file: link(file, "pixels", h5py.ExternalLink("/etc/passwd", "/pixels")),
            "no column 'pixels' of its own",
        ),
        (lambda file: link(file, "pixels", h5py.SoftLink("/nowhere")), "no column 'pixels' of its own"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(path, change, complaint):
    with pytest.raises(BadInput, match=complaint) as error:
        open_dataset(edit(path, change))
    assert "\n" not in str(error.value)


def replace(file, name, values):
    del file[name]
    file[name] = values


def link(file, name, target):
    del file[name]
    file[name] = target


def test_a_missing_truncated_or_foreign_file_is_refused(path, tmp_path):
    with pytest.raises(BadInput, match="there is no data file"):
        open_dataset(tmp_path / "nowhere.h5")
    content = path.read_bytes()
    for cut in (0, 100, len(content) // 2):
        path.write_bytes(content[:cut])
        with pytest.raises(BadInput, match="cannot read"):
            open_dataset(path)
    path.write_text("pixels, action, state")
    with pytest.raises(BadInput, match="cannot read"):
        open_dataset(path)
