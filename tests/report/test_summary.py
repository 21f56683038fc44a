from rllib_conspec.report.summary import PICTURE, describe_prototypes
from rllib_conspec.retrospection.conspec import ConSpecLearner

from .test_found import checkpoint


def test_names_what_was_found_and_where_the_picture_is(learner, tmp_path):
    path = checkpoint(tmp_path / "checkpoint", learner)
    found, picture = describe_prototypes(path, tmp_path)
    assert len(found) == int(learner.met.sum())
    assert all("mark 1" in line for line in found)
    assert picture == tmp_path / PICTURE
    assert picture.stat().st_size > 1000


def test_before_anything_is_found(learner, tmp_path):
    untrained = ConSpecLearner(learner.options, (3, 3, 3), seed=1)
    path = checkpoint(tmp_path / "checkpoint", untrained)
    lines, picture = describe_prototypes(path, tmp_path)
    assert "no critical step yet" in lines[0] and picture is None
    assert not (tmp_path / PICTURE).exists()


def test_says_nothing_of_a_run_without_conspec(tmp_path):
    assert describe_prototypes(tmp_path / "missing", tmp_path) == ([], None)
