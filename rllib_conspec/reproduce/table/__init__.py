"""Every figure of the paper with data in it, by task."""

from rllib_conspec.reproduce.table import ablations, atari_control, keys, orangetree

_ALL = (*orangetree.FIGURES, *keys.FIGURES, *atari_control.FIGURES, *ablations.FIGURES)
FIGURES = {figure.name: figure for figure in _ALL}
