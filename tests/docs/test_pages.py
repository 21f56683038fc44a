"""All pages: links lead somewhere, files that are named exist, code blocks run."""

import re
from pathlib import Path

import pytest
import yaml

from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.cli.train import OPTIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "cluster" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
USING = (ROOT / "docs" / "using.md").read_text()


def name(page):
    return page.relative_to(ROOT).as_posix()


def prose(page):
    """The page without code blocks and comments."""
    return re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)


def anchors(page):
    """Names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    for link in links:
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", [*PAGES, ROOT / "Makefile", *ROOT.glob("cluster/*.*")], ids=name)
def test_examples_that_are_named_exist(page):
    for path in re.findall(r"tuned_examples/[\w./]*\.yaml", page.read_text()):
        assert (ROOT / path).exists(), path


def test_every_example_of_the_readme_is_there_and_every_one_at_the_top_in_the_readme():
    table = re.search(r"## Tasks\n(.*?)\n## ", PAGES[0].read_text(), re.DOTALL)[1]
    named = set(re.findall(r"`([\w/]+\.yaml)`", table))
    here = {file.relative_to(ROOT / "tuned_examples").as_posix() for file in _examples()}
    assert {n for n in named if n not in here and f"paper/{n}" not in here} == set()
    numbered = {f"keys{k}_ppo.yaml" for k in range(1, 5)}  # keys1_ppo.yaml … keys4_ppo.yaml
    assert {n for n in here if "/" not in n} - named - numbered == set()


def _examples():
    return (ROOT / "tuned_examples").rglob("*.yaml")


def test_the_file_of_the_page_is_valid(tmp_path):
    text = re.search(r"```yaml\n(.*?)```", USING, re.DOTALL)[1]
    (tmp_path / "keys2.yaml").write_text(text)
    (experiment,) = load_experiments(str(tmp_path / "keys2.yaml"), {})
    configs = validate(experiment)
    assert [config.lr for config in configs] == yaml.safe_load(text)["keys2"]["config"]["lr"][
        "grid_search"
    ]
    assert configs[0].reward_models == {"conspec": {"intrinsic_coeff": 0.2}}


def test_the_python_of_the_page_runs(ray_local, capsys):
    text = re.search(r"```python\n(.*?)```", USING, re.DOTALL)[1]
    names = {}
    exec(text, names)
    names["algo"].stop()
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 3 and all(0 <= float(rate) <= 1 for rate, _ in printed)
    assert names["config"].success == "goal"


def test_flags_of_the_page_exist_and_all_are_named():
    flags = set()
    for option in OPTIONS:
        function = option(lambda: None)
        flags |= {o for p in function.__click_params__ for o in (*p.opts, *p.secondary_opts)}
    table = re.search(r"## Train\n(.*?)\n## ", USING, re.DOTALL)[1]
    said = set(re.findall(r"--[a-z][a-z-]+", table.replace("--[no-]", "--")))
    assert said <= flags | {"--no-checkpoint-at-end"}
    left_out = {f for f in flags if f.startswith("--")} - said
    assert left_out <= {"--algo", "--no-checkpoint-at-end", "--verbose"}
