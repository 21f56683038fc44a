"""Write the tables of docs/options.md from the options themselves: run it after changing one.

A table stands between `<!-- name -->` and `<!-- end -->`; the words around it are the page's own.
What a setting means is said once, where it is set: options carry their help, and settings of
`config` are explained in the `Args:` of the method that sets them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.ppo import PPOConfig

from rllib_conspec import auxiliary, reward_models
from rllib_conspec.algorithm import DecisionTransformerConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.config import PRESETS
from rllib_conspec.algorithm.policy import MODEL_CONFIG
from rllib_conspec.cli.checks.config_keys import FOUND
from rllib_conspec.networks.cores import REGISTRY as CORES
from rllib_conspec.registry import Registry

PAGE = Path(__file__).parent / "options.md"
SETTERS: dict[str, Callable] = {
    name: getattr(WholeEpisodePPOConfig, name) for name in ("rewards", "episodes", "training")
}
# Where a setter calls a setting by a shorter name.
SHORTER = {
    "reward_models": "models",
    "episodes_per_batch": "per_batch",
    "episodes_per_minibatch": "per_minibatch",
    "max_episode_steps": "max_steps",
}
# What algorithms of RLlib's have, too, when they are given reward models.
FOR_ANY_ALGORITHM = (
    "reward_models",
    "success",
    "reward_scale",
    "preset",
    "episodes_per_update",
    "max_pay_age",
)
NETWORK = {
    "encoder": "conv (small pictures), impala (pixels, the paper's), strided (pixels on a CPU, a "
    "twentieth of impala's cost), mlp (vectors), or auto: mlp for vectors, conv for pictures below "
    "20×20, else strided",
    "encoder_dim": "width of the encoder's output",
    "core": f"what the policy remembers with: {', '.join(CORES.entries)}, or an import path",
    "core_dim": "width of the core's memory; 0: no memory",
    "core_options": "the core's own options, [below](#cores)",
    "max_seq_len": "steps that a core learns through; longer episodes are cut into pieces, which "
    "begin with the memory that was there when they were played. By default whole episodes",
}


def page(text: str) -> str:
    """The page's text with its tables brought up to date."""
    tables = {
        "settings": settings_table(),
        "rllib": rllibs_table(),
        "model_config": network_table(),
        "decision_transformer": transformer_table(),
        **{f"reward_models.{name}": part for name, part in parts(reward_models.REGISTRY).items()},
        **{f"core.{name}": part for name, part in parts(CORES).items()},
        **{f"auxiliary.{name}": part for name, part in parts(auxiliary.REGISTRY).items()},
    }
    for name, table in tables.items():
        mark = f"<!-- {name} -->"
        if mark not in text:
            raise SystemExit(f"{PAGE.name} has no place for {mark}")
        before, _, rest = text.partition(mark)
        _, _, after = rest.partition("<!-- end -->")
        text = f"{before}{mark}\n{table}<!-- end -->{after}"
    return text


def settings() -> dict[str, Any]:
    """Public settings of our configuration that RLlib's PPO does not have, with defaults."""
    ours, known = vars(WholeEpisodePPOConfig()), {*vars(PPOConfig()), *FOUND}
    return {k: v for k, v in ours.items() if k not in known and not k.startswith("_")}


def settings_table() -> str:
    rows = []
    for name in settings():
        parameter = SHORTER.get(name, name)
        setter = next(s for s in SETTERS if parameter in arguments(SETTERS[s]))
        shorter = f" (`{parameter}`)" if parameter != name else ""
        mark = " ◆" if name in FOR_ANY_ALGORITHM else ""
        meaning = arguments(SETTERS[setter])[parameter]
        defaults = by_preset(lambda config, name=name: getattr(config, name))
        rows.append([f"`{name}`{mark}", *defaults, f"`.{setter}()`{shorter}", meaning])
    return markdown(["setting", *PRESETS, "in Python", ""], rows)


def rllibs_table() -> str:
    """Settings of RLlib's own whose defaults are others here."""
    rllibs = vars(PPOConfig())
    rows = []
    for name, value in vars(WholeEpisodePPOConfig()).items():
        plain = name in rllibs and not name.startswith("_") and not isinstance(value, type)
        if plain and value != rllibs[name]:
            values = by_preset(lambda config, name=name: getattr(config, name))
            rows.append([f"`{name}`", *values, said(rllibs[name])])
    return markdown(["setting", *PRESETS, "RLlib's PPO"], rows)


def transformer_table() -> str:
    """Settings of the Decision Transformer, with its defaults and those on Atari."""
    defaults = [DecisionTransformerConfig().rewards(preset=p) for p in (PRESETS[0], "atari")]
    rows = []
    for name, meaning in arguments(DecisionTransformerConfig.decision_transformer).items():
        values = [said(getattr(config, name)) for config in defaults]
        rows.append([f"`{name}`", *values, meaning])
    values = [said(config.lr) for config in defaults]
    rows.append(["`lr`", *values, "Learning rate, a setting of RLlib's."])
    return markdown(["setting", "default", "preset atari", ""], rows)


def network_table() -> str:
    rows = []
    for key in MODEL_CONFIG:
        values = by_preset(lambda config, key=key: (MODEL_CONFIG | config._model_config)[key])
        rows.append([f"`{key}`", *values, NETWORK[key]])
    return markdown(["key", *PRESETS, ""], rows)


def parts(registry: Registry) -> dict[str, str]:
    """Name → what it is, and its options, of everything that is registered."""
    texts = {}
    for name in registry.entries:
        found = registry.find(name)
        presets = PRESETS if found.presets else ()
        columns = [found.presets.get(preset, {}) for preset in presets] or [{}]
        rows = []
        for field in fields(found.Options):
            values = [said(column.get(field.name, field.default)) for column in columns]
            rows.append([f"`{field.name}`", *values, meaning_of(field)])
        about = inspect.getdoc(found).split("\n\n")[0].replace("\n", " ")
        table = markdown(["option", *(presets or ("default",)), ""], rows) if rows else ""
        texts[name] = f"{about}\n\n{table}".rstrip("\n") + "\n"
    return texts


def meaning_of(field: Any) -> str:
    choices = field.metadata["choices"]
    listed = f" One of {', '.join(f'`{c}`' for c in choices)}." if choices else ""
    return f"{field.metadata['help']}.{listed}"


def arguments(method: Callable) -> dict[str, str]:
    """What the `Args:` of a method say of each."""
    _, _, text = inspect.getdoc(method).partition("Args:\n")
    found = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)[1:]
    pairs = zip(found[::2], found[1::2], strict=True)
    return {name: " ".join(meaning.split()) for name, meaning in pairs}


def by_preset(read: Callable[[Any], Any]) -> list[str]:
    """What a configuration holds, with each of the presets."""
    return [said(read(WholeEpisodePPOConfig().rewards(preset=preset))) for preset in PRESETS]


def said(value: Any) -> str:
    """A value as an experiment file would have it."""
    if value is None:
        return "–"
    if value == {}:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
