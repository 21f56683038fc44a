"""The page: reads trials, draws, asks the reward models, and writes one file with all of it inside.

Pictures of curves and galleries are written beside it, for papers and slides.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from rllib_conspec.errors import UserError
from rllib_conspec.report import comparing
from rllib_conspec.report.curves import RETURN, SMOOTHING, SUCCESS, Curve, curve_of, quartiles
from rllib_conspec.report.groups import Group, find_labelled, group_trials
from rllib_conspec.report.mattered import sweeps
from rllib_conspec.report.page import figures as F
from rllib_conspec.report.page import tables
from rllib_conspec.report.reading import read_trials
from rllib_conspec.report.trials import SECONDS, STEPS, read_configuration, read_metrics

if TYPE_CHECKING:
    from rllib_conspec.report.page.shown import ShownTrial

PAGE = "index.html"
MODELS_SHOWN = 4  # groups of which one trial's models are asked
CONFIGURED = 24  # groups whose configuration is on the page
NOTED = 30  # gaps that are named one by one
METRIC_POINTS = 400
MANY = 20  # groups from which on importances are more than a hint
METRICS = {"success": ("Success rate", SUCCESS), "return": ("Return", RETURN)}
AGAINST = {"steps": ("environment steps", STEPS), "time": ("seconds", SECONDS)}
STATUS_CLASS = {"finished": "good", "running": "", "failed": "bad", "stopped": "warn"}


@dataclass(frozen=True)
class Written:
    """What was written, and what could not be read."""

    page: Path
    trials: int
    groups: int
    notes: list[str]


class Report:
    """One page while it is made."""

    def __init__(self, groups: Sequence[Group], out: Path, threshold: float, iqm: bool) -> None:
        self.groups, self.out, self.threshold = groups, out, threshold
        self.summary = comparing.iqm if iqm else quartiles
        self.iqm = iqm
        self.figures: dict[str, F.Figure] = {}
        # Metric → against → label → curves.
        self.curves = {
            metric: {
                against: {g.label: _curves(g, path, x) for g in groups}
                for against, (_, x) in AGAINST.items()
            }
            for metric, (_, path) in METRICS.items()
        }
        self.measured = [m for m, by in self.curves.items() if any(by["steps"].values())]
        # Success says more than a return where both are known.
        self.judged = self.measured[0] if self.measured else "success"

    def notes(self) -> list[str]:
        notes = []
        for trial in (t for g in self.groups for t in g.trials):
            notes += trial.gaps
            if trial.error:
                notes.append(f"{trial.name} failed: {trial.error}")
            if not trial.rows:
                notes.append(f"{trial.name}: no iteration has ended")
        if len(notes) > NOTED:
            notes = [*notes[:NOTED], f"… and {len(notes) - NOTED} more like these"]
        return notes

    # --- curves and tables ------------------------------------------------------------------------

    def drawn(self) -> list[str]:
        """Labels of the groups that are drawn: where there are too many, the best."""
        by = self.curves[self.judged]["steps"]
        labels = [g.label for g in self.groups if by[g.label]]
        best = sorted(labels, key=lambda n: -np.median([c.values[-1] for c in by[n]]))[: F.DRAWN]
        return [label for label in labels if label in best]

    def curve_figures(self) -> list[dict[str, Any]]:
        from rllib_conspec.report.curves import draw_curves

        shown, labels = [], self.drawn()
        for metric in self.measured:
            name, path = METRICS[metric]
            pictures = []
            for against, (x, column) in AGAINST.items():
                by = self.curves[metric][against]
                curves = {label: by[label] for label in labels if by[label]}
                if not curves:
                    continue
                share = metric == "success"
                figure = F.curves_figure(curves, self.summary, x, share)
                self.figures[f"{metric}-{against}"] = figure
                picture = self.out / f"{metric}_{against}.png"
                draw_curves(curves, picture, name, path, column, self.summary)
                pictures.append(picture.name)
            key = _key([label for label in labels if self.curves[metric]["steps"][label]])
            shown.append({"id": metric, "name": name, "key": key, "files": pictures})
        return shown

    def against(self) -> list[tuple[str, str]]:
        """Axes that all curves have."""
        ids = [a for a in AGAINST if all(f"{m}-{a}" in self.figures for m in self.measured)]
        return [(a, {"steps": "Steps", "time": "Time"}[a]) for a in ids]

    def group_rows(self) -> list[tables.GroupRow]:
        rows = []
        for g in self.groups:
            own = {m: self.curves[m]["steps"][g.label] for m in METRICS}
            judged = self.curves[self.judged]
            curves = tables.Curves(
                own["success"], own["return"], judged["steps"][g.label], judged["time"][g.label]
            )
            rows.append(tables.group_row(g, curves, self.threshold))
        return rows

    def improvements(self) -> dict[str, object] | None:
        return tables.improvement_rows(comparing.improvements(self.curves[self.judged]["steps"]))

    def mattered(self) -> list[dict[str, Any]]:
        """What the groups of each sweep differ in."""
        by = self.curves[self.judged]["steps"]
        ends = {n: float(np.median([c.values[-1] for c in cs])) for n, cs in by.items() if cs}
        shown = []
        for k, found in enumerate(sweeps(self.groups, ends, METRICS[self.judged][0].lower())):
            figure = F.sweep_figure(found)
            shown.append(
                {
                    "experiment": found.experiment,
                    "count": len(found.labels),
                    "few": len(found.labels) < MANY,
                    "what": f"{found.reached.name}, mean of the last {SMOOTHING} iterations",
                    "figure": self._figure(f"mattered-{k}", figure),
                    "best": f"best {sum(not t['quiet'] for t in figure['data'])}",
                    "rows": tables.mattered_rows(found),
                }
            )
        return shown

    # --- what models found ------------------------------------------------------------------------

    def found(self) -> tuple[list[dict[str, Any]], str]:
        """One trial of each of the first groups that have any models, and what was left out."""
        shown = []
        candidates = [g for g in self.groups if any(t.checkpoints for t in g.trials)]
        for group in candidates:
            if len(shown) == MODELS_SHOWN:
                text = f"Of {MODELS_SHOWN} groups. For others, give their directories alone."
                return shown, text
            from rllib_conspec.report.page.shown import show_trial  # with torch and Ray

            own = show_trial(self._best(group))
            if not own.silent:
                shown.append(self._shown(group, own, len(shown)))
        return shown, ""

    def _best(self, group: Group) -> Any:
        """The trial that ended highest, of those the one that needed the fewest steps."""
        have = [t for t in group.trials if t.checkpoints]
        column = "/".join(METRICS[self.judged][1])

        def rank(trial):
            curve = curve_of(trial, METRICS[self.judged][1])
            end = curve.values[-1] if len(curve.values) else -np.inf
            return end >= self.threshold, -curve.steps_to(self.threshold), end, trial.last(column)

        return max(have, key=rank)

    def _shown(self, group: Group, own: ShownTrial, number: int) -> dict[str, Any]:
        models = []
        for m in own.models:
            timelines = [
                {
                    "id": self._figure(f"timeline-{number}-{m.name}-{i}", t.figure),
                    "title": t.title,
                    "key": _key_of(t.figure),
                    "frames": t.frames,
                    "events": t.events,
                }
                for i, t in enumerate(m.timelines)
            ]
            galleries = []
            for name, rows in m.galleries.items():
                made = [
                    {
                        "title": r.title,
                        "facts": r.facts,
                        "words": r.words,
                        "frames": r.frames,
                        "figure": r.figure
                        and self._figure(f"row-{number}-{m.name}-{name}-{i}", r.figure),
                        "key": _key_of(r.figure) if r.figure else [],
                    }
                    for i, r in enumerate(rows)
                ]
                picture = f"{group.slug}_{m.name}_{name}.png"
                self._picture(own, m.name, name, self.out / picture)
                galleries.append({"rows": made, "file": picture})
            models.append(
                {"name": m.name, "lines": m.lines, "timelines": timelines, "galleries": galleries}
            )
        where = f"{own.trial.name}, {own.checkpoint}" if own.checkpoint else own.trial.name
        return {
            "id": number,
            "label": group.label,
            "where": where,
            "trouble": own.trouble,
            "models": models,
            "metrics": self._metrics(own, number),
        }

    def _picture(self, own: ShownTrial, model: str, gallery: str, path: Path) -> None:
        from rllib_conspec.report.gallery import draw_gallery

        d = own.described
        rows = next(found for m, found in d.models if m.name == model).galleries[gallery]
        title = f"{own.trial.name}: {gallery}"
        draw_gallery(rows, path, title, renders=own.pictures, channels=d.channels, names=d.names)

    def _metrics(self, own: ShownTrial, number: int) -> list[dict[str, Any]]:
        shown = []
        for m in own.models:
            steps, metrics = read_metrics(own.trial.path, m.name)
            some = slice(None, None, max(1, len(steps) // METRIC_POINTS))
            for name, parts in metrics.items():
                values = {part or name: v[some] for part, v in list(parts.items())[: F.DRAWN]}
                figure = F.metric_figure(values, steps[some])
                id = self._figure(f"metric-{number}-{m.name}-{name}", figure)
                title = f"{m.name}: {name.replace('_', ' ')}"
                shown.append({"id": id, "name": title, "key": _key_of(figure)})
        return shown

    def _figure(self, id: str, figure: F.Figure) -> str:
        self.figures[id] = figure
        return id

    # --- the rest --------------------------------------------------------------------------------

    def configurations(self) -> list[dict[str, Any]]:
        shown = []
        for g in self.groups[:CONFIGURED]:
            everything = read_configuration(g.trials[0].path)
            shown.append(
                {
                    "label": g.label,
                    "params": _yaml(dict(g.trials[0].params)),
                    "everything": _yaml(everything) if everything else "",
                    "trials": g.trials,
                }
            )
        return shown

    def context(self) -> dict[str, Any]:
        """Everything that the template asks for."""
        count = sum(len(g.trials) for g in self.groups)
        curves = self.curve_figures()
        trials_shown, left_out = self.found()
        mattered = self.mattered()
        many = len(self.groups) > F.DRAWN
        sections = [("curves", "Learning curves"), ("groups", "Groups")]
        sections += [("mattered", "What mattered")] if mattered else []
        sections += [("found", "What was found")] if trials_shown else []
        sections += [("configuration", "Configuration")]
        return {
            "title": _title(self.groups),
            "subtitle": f"{_count(count, 'trial')} in {_count(len(self.groups), 'group')}",
            "sections": sections,
            "notes": self.notes(),
            "band": "Interquartile mean, 95 % intervals" if self.iqm else "Median and quartiles",
            "curves": curves,
            "against": self.against(),
            "groups": self.group_rows(),
            "groups_left_out": f"Curves are of the {F.DRAWN} best groups." if many else "",
            "improvements": self.improvements(),
            "improvement_of": METRICS[self.judged][0].lower(),
            "mattered": mattered,
            "threshold": f"{self.threshold:g}",
            "smoothing": SMOOTHING,
            "status_class": STATUS_CLASS,
            "trials_shown": trials_shown,
            "found_left_out": left_out,
            "configurations": self.configurations(),
            "date": time.strftime("%Y-%m-%d %H:%M"),
        }


def write_report(
    results: Sequence[str], out: str | Path, *, threshold: float = 0.9, iqm: bool = False
) -> Written:
    """Write the page and its pictures into the directory `out`. A UserError says in one line what
    is wrong with what was given.
    """
    labels = find_labelled(results)
    out = Path(out)
    page = out / PAGE
    try:
        out.mkdir(parents=True, exist_ok=True)
        report = Report(group_trials(read_trials(labels), labels), out, threshold, iqm)
        context = report.context()
        draft = page.with_suffix(".tmp")
        draft.write_text(_render(context, report.figures), encoding="utf-8")
        draft.replace(page)  # whoever has it open never sees half a page
    except OSError as error:
        where = error.filename or out
        raise UserError(f"{where}: cannot be written: {error.strerror or error}.") from error
    return Written(page, len(labels), len(report.groups), context["notes"])


def _render(context: dict[str, Any], figures: dict[str, F.Figure]) -> str:
    environment = Environment(
        loader=PackageLoader("rllib_conspec.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    here = files("rllib_conspec.report.page")
    return environment.get_template("report.html").render(
        context,
        style=(here / "style.css").read_text(encoding="utf-8"),
        script=(here / "page.js").read_text(encoding="utf-8"),
        plotly=(files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"),
        # Nothing in it may end the script element that it stands in.
        figures=json.dumps(figures, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _curves(group: Group, path: Sequence[str], against: str) -> list[Curve]:
    curves = [curve_of(trial, path, against) for trial in group.trials]
    return [curve for curve in curves if len(curve.steps)]


def _key(labels: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"label": label, "series": F.series(i), "dash": F.dash(i)} for i, label in enumerate(labels)
    ]


def _key_of(figure: F.Figure) -> list[dict[str, Any]]:
    """Of the lines in a figure."""
    return [
        {"label": t["name"], "series": t["series"], "dash": t["line"]["dash"]}
        for t in figure["data"]
        if t["mode"].startswith("lines") and "name" in t
    ]


def _yaml(values: dict[str, Any]) -> str:
    return yaml.safe_dump(values, sort_keys=True, allow_unicode=True, width=100).strip()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _title(groups: Sequence[Group]) -> str:
    names = list(dict.fromkeys(g.label for g in groups))
    return "Report: " + (", ".join(names[:3]) + (" …" if len(names) > 3 else ""))
