from rllib_conspec.algorithm.config import RewardModelConfig
from rllib_conspec.cli import examples
from rllib_conspec.cli.checks.algorithms import find_algorithm
from rllib_conspec.cli.checks.config_keys import check_config
from rllib_conspec.cli.checks.experiment import deep_merge, load_experiments
from rllib_conspec.cli.checks.stop import check_stop
from rllib_conspec.cli.checks.validate import build_config
from rllib_conspec.report.curves import SUCCESS
from rllib_conspec.reproduce.figure import PAPER, SMALL
from rllib_conspec.reproduce.table import FIGURES
from rllib_conspec.reproduce.table.runs import BUDGETS

# Systems that are being built: their figures say so until the files are there.
COMING = {"rivals/tvt", "rivals/rma", "rivals/conspec_rma", "rivals/rims"}
ALL = [
    (scale, line) for f in FIGURES.values() for scale, lines in f.scales.items() for line in lines
]


def test_every_figure_says_what_the_paper_claims_and_how_it_is_judged():
    assert len(FIGURES) >= 20
    for name, figure in FIGURES.items():
        assert name == figure.name
        assert figure.claim.endswith((".", ".)")) and figure.where.startswith("Fig")
        assert (figure.threshold is not None) == (figure.metric == SUCCESS)
        assert figure.threshold is None or 0.5 <= figure.threshold < 0.93  # runs end at 0.93
        assert bool(figure.scales) != bool(figure.lacks or figure.elsewhere)
        for scale in figure.scales:
            assert scale in (SMALL, PAPER)
            assert figure.expected(scale), (name, scale)
        named = {line.key for lines in figure.scales.values() for line in lines}
        assert {key for e in figure.expects for key in e.lines} <= named


def test_lines_have_keys_and_runs_have_names_of_their_own():
    for figure in FIGURES.values():
        for lines in figure.scales.values():
            assert len({line.key for line in lines}) == len(lines)
    runs = {}
    for scale, line in ALL:
        assert runs.setdefault((scale, line.run.name), line.run) == line.run


def test_small_runs_end_and_the_same_steps_are_for_everybody():
    for figure in FIGURES.values():
        for line in figure.scales.get(SMALL, ()):
            keys = line.panel.partition(" key")[0]
            if figure.threshold and keys.isdigit() and line.run.stop:
                assert line.run.stop["num_env_steps_sampled_lifetime"] == BUDGETS[int(keys)]


def test_every_run_is_of_an_example_and_its_settings_are_possible():
    seen = {}
    for scale, line in ALL:
        run = line.run
        if run.example in COMING and run.example not in examples.names():
            continue
        seen[scale, run.name] = run
    for run in seen.values():
        (experiment,) = load_experiments(str(examples.names()[run.example]), {})
        config = deep_merge(experiment.config, run.config)
        default = find_algorithm(experiment.run).get_default_config()
        assert isinstance(default, RewardModelConfig) or run.first
        check_config(config, default)
        if not run.first:  # a recording that is not there
            build_config(default, experiment.env, config)
        check_stop(run.stop or experiment.stop, [], [])
