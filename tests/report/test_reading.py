from trials_on_disk import write_trial

from rllib_conspec.report import reading
from rllib_conspec.report.trials import SUCCESS


def test_processes_read_the_same_in_the_same_order(tmp_path, monkeypatch):
    paths = [write_trial(tmp_path / "r" / f"trial_{i}", [i / 10, i / 5]) for i in range(3)]
    alone = reading.read_trials(paths)
    monkeypatch.setattr(reading, "LARGE", 0)
    together = reading.read_trials(paths)
    assert [t.path for t in together] == [t.path for t in alone] == paths
    assert [t.columns[SUCCESS].tolist() for t in together] == [[0, 0], [0.1, 0.2], [0.2, 0.4]]
