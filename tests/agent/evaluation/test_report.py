"""The report: one file that holds everything, says what the summary says, and opens without complaint."""

import base64
import html.parser
import json
import re
import shutil
import subprocess

import imageio.v2 as imageio
import numpy as np
import pytest

import envs
from agent.episodes.outcome import read_lines
from agent.episodes.settings import EpisodeSettings
from agent.evaluate import Evaluate, evaluate
from agent.evaluation import charts, report, summary

ROOM, POOR = "tests.analytic_world:RoomWorld", "tests.analytic_world:PoorRoomWorld"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    small = ("candidates=16", "iterations=2", "elites=4", "keep=2")
    episode = EpisodeSettings("two-room", plan=small)
    evaluate(Evaluate(episode, (ROOM, POOR), episodes=8, out=out, disturb=1.0), progress=False)
    return out


class Page(html.parser.HTMLParser):
    """The cells of a page's table, its videos and its figures, and whether tags match."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.videos, self.charts, self.captions, self.open = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link"):
            self.open.append(tag)
        attributes = dict(attributes)
        if tag == "tr":
            self.rows.append([])
        if tag == "video":
            self.videos.append(attributes["src"])
        if tag == "svg":
            self.charts.append(attributes["aria-label"])

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)
        if self.open and self.open[-1] == "figcaption":
            self.captions.append(data)


def test_the_page_holds_the_table_two_charts_and_six_videos(folder):
    page = Page((folder / "report.html").read_text())
    assert not page.open
    assert page.rows == summary.table(json.loads((folder / "summary.json").read_text()))
    assert page.charts == ["success against distance", "histogram of plan times"]
    assert len(page.videos) == 6


def test_the_page_needs_no_other_file(folder):
    text = (folder / "report.html").read_text()
    assert set(re.findall(r'(?:src|href)="([^"]{0,12})', text)) == {"data:video/m", "data:,"}


def test_the_paired_comparison_is_on_the_page(folder):
    assert f"{ROOM} against {POOR} on 8 pairs" in (folder / "report.html").read_text()


def test_videos_show_solved_and_unsolved_episodes(folder):
    captions = Page((folder / "report.html").read_text()).captions
    solved = sum("solved at step" in caption for caption in captions)
    unsolved = sum("not solved" in caption for caption in captions)
    wins = json.loads((folder / "summary.json").read_text())["models"][ROOM]["first_hit"]["rate"] * 8
    assert solved + unsolved == 6
    assert solved == max(min(wins, 3), 6 - (8 - wins))


@pytest.mark.parametrize(
    ("solved", "unsolved", "shown"), [(9, 9, (3, 3)), (9, 1, (5, 1)), (0, 9, (0, 6)), (2, 1, (2, 1))]
)
def test_three_of_each_are_shown_or_more_of_one_where_the_other_is_short(solved, unsolved, shown):
    outcomes = [True] * solved + [False] * unsolved
    lines = [{"subject": "m", "seed": 0, "pair": n, "success": success} for n, success in enumerate(outcomes)]
    chosen = report.worth_watching({"models": {"m": {}}, "agents": {}}, lines)
    assert (sum(outcomes[pair] for *_, pair in chosen), sum(not outcomes[pair] for *_, pair in chosen)) == shown


def test_a_replay_repeats_the_episode_from_its_line(folder):
    task = envs.make("two-room")
    lines = [line for line in read_lines(folder / "episodes.jsonl") if line["pushes"]]
    assert lines
    for line in lines:
        states = list(report.replay(task, line))
        assert task.distance(states[-1], np.array(line["goal"])) == line["final_distance"]
        assert len(states) == line["steps"] + 1


def test_a_video_has_a_frame_for_every_record(folder, tmp_path):
    source = Page((folder / "report.html").read_text()).videos[0]
    (tmp_path / "episode.mp4").write_bytes(base64.b64decode(source.partition(",")[2]))
    frames = imageio.mimread(tmp_path / "episode.mp4", memtest=False)
    assert len(frames) == 51
    assert frames[0].shape == (report.SIDE, 2 * report.SIDE, 3)


def test_names_cannot_break_the_page():
    assert "<b>" not in charts.histogram({"<b>": [1.0, 2.0]}, "ms")


@pytest.mark.parametrize("most", [0.03, 0.9, 1.0, 1.9, 4.0, 7.0, 115.0, 5000.0])
def test_axes_have_a_few_round_marks(most):
    marks = charts._marks(most)
    assert 3 <= len(marks) <= 11
    assert marks[0] == 0
    assert marks[-1] <= most * 1.001


def browse(path):
    """What Chromium makes of a page: its document and what it logged to the console."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    command = [CHROMIUM, *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian package 'chromium')")
def test_chromium_opens_the_page_without_console_errors_and_shows_the_table(folder, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<script>console.error('heard')</script>")
    assert browse(broken)[1], "console errors would go unnoticed"

    document, console = browse(folder / "report.html")
    assert console == []
    cells = re.findall(r"<t[dh]>(.*?)</t[dh]>", document)
    assert cells == [cell for row in summary.table(json.loads((folder / "summary.json").read_text())) for cell in row]
