"""A page about trials: `rllib report`."""

from __future__ import annotations

import click

from rllib_conspec.cli.running.found import short


def report(
    results: tuple[str, ...], *, out: str, iqm: bool, threshold: float, verbose: int
) -> None:
    """Write the page; see `rllib report --help` for the arguments."""
    from rllib_conspec.cli.running.cluster import quiet_loggers
    from rllib_conspec.report.page.build import write_report

    quiet_loggers(verbose)
    written = write_report(results, out, threshold=threshold, iqm=iqm)
    for note in written.notes:
        click.echo(f"  {note}")
    trials = "1 trial" if written.trials == 1 else f"{written.trials} trials"
    groups = "1 group" if written.groups == 1 else f"{written.groups} groups"
    click.echo(f"{short(written.page)}: {trials} in {groups}.")
