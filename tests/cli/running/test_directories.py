import re

from rllib_conspec.cli.running import directories


def test_a_directory_with_results_is_never_reused(tmp_path):
    assert directories.fresh(tmp_path, "keys1") == "keys1"
    (tmp_path / "keys1").mkdir()
    assert directories.fresh(tmp_path, "keys1") == "keys1"
    (tmp_path / "keys1" / "progress.csv").write_text("")
    assert re.fullmatch(
        r"keys1_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", directories.fresh(tmp_path, "keys1")
    )


def test_the_latest_run_of_exactly_that_name_is_found(sweep, tmp_path):
    storage = sweep.results
    found = directories.latest(storage, "cart")
    assert found.path == storage / "cart"
    assert found.finished
    assert found.iteration == 3
    assert directories.latest(storage, "car") is None
    assert directories.latest(tmp_path / "nowhere", "cart") is None
