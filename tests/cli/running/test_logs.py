"""What a killed run wrote after its last checkpoint is replaced when it is resumed."""

import csv
import json

from rllib_conspec.cli.running.logs import ContinuedCSV, ContinuedJson


def results(*iterations):
    return [{"training_iteration": i, "value": {"a": 10 * i}} for i in iterations]


class Trial:
    """As much of a Tune trial as its loggers ask for; without a checkpoint nothing is fetched."""

    checkpoint = None
    config = {}

    def __init__(self, local_path):
        self.local_path = str(local_path)

    def init_local_path(self):
        pass


def log(logger, trial, iterations):
    for result in results(*iterations):
        logger.log_trial_result(0, trial, result)
    logger.log_trial_end(trial)


def test_the_table_goes_on_under_its_columns(tmp_path):
    file = tmp_path / "progress.csv"
    log(ContinuedCSV(), Trial(tmp_path), [1, 2, 3, 4])
    with file.open("a") as stream:
        stream.write("5")  # cut short
    again = ContinuedCSV()
    trial = Trial(tmp_path)
    again.log_trial_result(0, trial, {"new": 7, "value": {"a": 1}, "training_iteration": 3})
    log(again, trial, [4])
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["training_iteration"], row["value/a"]) for row in rows] == [
        ("1", "10"),
        ("2", "20"),
        ("3", "1"),
        ("4", "40"),
    ]


def test_the_results_go_on_without_duplicates(tmp_path):
    file = tmp_path / "result.json"
    log(ContinuedJson(), Trial(tmp_path), [1, 2, 3, 4])
    with file.open("a") as stream:
        stream.write('{"training_iteration": 5, "val')
    log(ContinuedJson(), Trial(tmp_path), [3, 4, 5])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["training_iteration"] for line in lines] == [1, 2, 3, 4, 5]
