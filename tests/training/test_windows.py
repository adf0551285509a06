"""Training windows and their order: what a window holds, how episodes are split, which windows make a batch."""

import h5py
import numpy as np
import pytest

from envs.dataset.reader import open_dataset
from envs.errors import BadInput
from tests.moving_dot import write
from training.data.windows import Order, Windows, action_scale, rows_of, split

ZERO = np.zeros(2, np.float32)


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "dot.h5", episodes=4, steps=30, side=16)


def edit(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def test_a_window_is_four_frames_five_steps_apart_with_the_five_actions_that_leave_each(path):
    data = open_dataset(path)
    windows = Windows.of(data, np.array([1]), frames=4, action_block=5, fill=ZERO)
    assert len(windows) == 31 - 15
    index = np.array([3])
    np.testing.assert_array_equal(windows.pixels(index)[0], data.pixels[[34, 39, 44, 49]])
    np.testing.assert_array_equal(windows.actions(index)[0], data.action[34:54].reshape(4, 10))


def test_rows_five_steps_apart_give_the_same_windows_as_rows_one_step_apart(tmp_path):
    fine = open_dataset(write(tmp_path / "fine.h5", episodes=2, side=16))
    coarse = open_dataset(write(tmp_path / "coarse.h5", episodes=2, side=16, every=5))
    assert coarse.frame_skip == 5
    episodes = np.array([0, 1])
    dense = Windows.of(fine, episodes, 4, 5, ZERO)
    sparse = Windows.of(coarse, episodes, 4, 5, ZERO)
    assert len(sparse) == 2 * (7 - 3)
    for place in range(4):
        np.testing.assert_array_equal(sparse.pixels(np.array([place])), dense.pixels(np.array([5 * place])))
        np.testing.assert_array_equal(sparse.actions(np.array([place])), dense.actions(np.array([5 * place])))


def test_no_window_crosses_from_one_episode_into_the_next(path):
    data = open_dataset(path)
    windows = Windows.of(data, np.arange(4), frames=4, action_block=5, fill=ZERO)
    last = windows.start + 3 * windows.stride
    assert (last < data.offset[windows.episode] + data.length[windows.episode]).all()


def test_an_action_that_is_missing_or_past_the_end_is_the_mean(path):
    data = open_dataset(edit(path, lambda file: file["action"].__setitem__(33, np.nan)))
    mean = np.array([7.0, 8.0], np.float32)
    windows = Windows.of(data, np.array([0, 1]), frames=4, action_block=5, fill=mean)
    ending = windows.actions(np.flatnonzero(windows.start == 15))[0]
    np.testing.assert_array_equal(ending[3], np.tile(mean, 5))
    holed = windows.actions(np.flatnonzero(windows.start == 31))[0]
    np.testing.assert_array_equal(holed[0, 4:6], mean)
    np.testing.assert_array_equal(holed[0, :4], data.action[31:33].ravel())


def test_action_statistics_are_of_single_actions_of_the_given_episodes_without_the_missing_ones(tmp_path):
    data = open_dataset(write(tmp_path / "coarse.h5", episodes=3, side=16, every=5))
    mean, std = action_scale(data, np.array([0, 2]))
    taken = np.concatenate([data.action[:6], data.action[14:20]]).reshape(-1, 2)
    np.testing.assert_allclose(mean, taken.mean(0), rtol=1e-5)
    np.testing.assert_allclose(std, taken.std(0), rtol=1e-5)


def test_an_action_that_never_changes_is_not_divided_by_zero(path):
    data = open_dataset(edit(path, lambda file: file["action"].__setitem__((slice(None), 0), 0.5)))
    mean, std = action_scale(data, np.arange(4))
    assert mean[0] == 0.5
    assert std[0] == 1


def test_infinite_actions_are_refused(path):
    data = open_dataset(edit(path, lambda file: file["action"].__setitem__(3, np.inf)))
    with pytest.raises(BadInput, match="missing or infinite"):
        action_scale(data, np.arange(4))


def test_the_split_is_by_episode_and_the_same_every_time(tmp_path):
    data = open_dataset(write(tmp_path / "many.h5", episodes=30, steps=2, side=8))
    train, held = split(data)
    assert len(held) == 3
    assert sorted([*train, *held]) == list(range(30))
    assert not set(rows_of(data, train)) & set(rows_of(data, held))
    np.testing.assert_array_equal(split(data)[1], held)


def test_one_episode_cannot_be_split(tmp_path):
    with pytest.raises(BadInput, match="at least 2 are needed"):
        split(open_dataset(write(tmp_path / "one.h5", episodes=1, side=8)))


def test_a_row_spacing_that_does_not_divide_the_action_block_is_refused(tmp_path):
    data = open_dataset(write(tmp_path / "odd.h5", episodes=2, side=8, every=3))
    with pytest.raises(BadInput, match="3 control steps a row"):
        Windows.of(data, np.arange(2), 4, 5, ZERO)


def test_an_epoch_shows_every_window_once_in_an_order_that_depends_on_seed_and_step_alone():
    order = Order(windows=100, batch=10, seed=1)
    epoch = np.concatenate([order[step] for step in range(10)])
    assert sorted(epoch) == list(range(100))
    again = Order(windows=100, batch=10, seed=1)
    np.testing.assert_array_equal(again[17], order[17])
    np.testing.assert_array_equal(again[3], order[3])
    assert not np.array_equal(order[10], order[0])
    assert not np.array_equal(Order(100, 10, seed=2)[0], order[0])


def test_fewer_windows_than_a_batch_are_refused():
    with pytest.raises(BadInput, match="lower --batch"):
        Order(windows=5, batch=8, seed=0)
