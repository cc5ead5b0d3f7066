"""The plots of the reports, drawn by plotly.

Figures have no paper or font colors: the page's script sets them from the style sheet, so that plots follow the light
or dark theme. No corpus text ever enters a plot: labels are names of stages, reasons and settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from corpusforge.report.gather import Step

if TYPE_CHECKING:
    import plotly.graph_objects as go

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#3b7dd8", "#e08a3c", "#2f9e77", "#d1495b", "#8367c7", "#8a929c"
"""Distinguishable with the most common kinds of color blindness, and readable on white and on near-black."""

RUNS = (BLUE, ORANGE, GREEN, PURPLE, GREY)
"""Colors of runs in one plot; red is the unigram entropy."""

SCOPES = {"record": PURPLE, "page": ORANGE, "line": BLUE, "span": RED}
"""Colors of reasons by what was dropped."""


def _graph() -> Any:
    import plotly.graph_objects as go  # takes 0.3 s to import

    return go


def _finish(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 10, "r": 20, "t": 36, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "y": 1.12, "x": 0},
        hoverlabel={"namelength": -1},
        **layout,
    )
    figure.update_xaxes(automargin=True, zeroline=False)
    figure.update_yaxes(automargin=True, zeroline=False)
    return figure


def funnel_figure(steps: Sequence[Step]) -> go.Figure:
    """Documents and text of every step as two funnels side by side; raw records have only a number of documents."""
    from plotly.subplots import make_subplots

    go = _graph()
    figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=("documents", "text, MB"))
    documents, text = list(steps), [s for s in steps if s.label != "raw records"]
    for column, rows, values in (
        (1, documents, [s.documents for s in documents]),
        (2, text, [s.text_bytes / 1e6 for s in text]),
    ):
        trace = go.Funnel(
            y=[s.label for s in rows],
            x=values,
            texttemplate="%{value:,.3~g}" if column == 2 else "%{value:,}",
            marker={"color": BLUE if column == 1 else GREEN},
            connector={"fillcolor": "rgba(138,146,156,.18)"},
            hovertemplate="%{y}: %{x:,}<extra></extra>",
        )
        figure.add_trace(trace, 1, column)
    figure.update_yaxes(categoryorder="array", categoryarray=[s.label for s in steps])
    return _finish(figure, 110 + 52 * len(steps), showlegend=False)


def reasons_figure(rows: Mapping[str, int], unit: str) -> go.Figure:
    """One bar per reason, the largest on top, colored by what was dropped: record, page, line or span."""
    go = _graph()
    ordered = sorted(rows.items(), key=lambda item: item[1])
    figure = go.Figure(
        go.Bar(
            y=[reason for reason, _ in ordered],
            x=[count for _, count in ordered],
            orientation="h",
            marker={"color": [SCOPES.get(reason.split(":")[0], GREY) for reason, _ in ordered]},
            texttemplate="%{x:,}",
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"%{{y}}: %{{x:,}} {unit}<extra></extra>",
        )
    )
    figure.update_xaxes(title=unit, range=[0, 1.15 * max(rows.values(), default=1)])
    return _finish(figure, 90 + 30 * len(ordered), bargap=0.35)


def histogram_figure(counts: Sequence[float], title: str) -> go.Figure:
    """A histogram whose bins start at 0 and have a width of 1, merged into at most 128 bars."""
    go = _graph()
    each = max(1, math.ceil(len(counts) / 128))
    bars = [sum(counts[start : start + each]) for start in range(0, len(counts), each)]
    left = [k * each for k in range(len(bars))]
    labels = [f"{at:,}" if each == 1 else f"{at:,} to {at + each - 1:,}" for at in left]
    figure = go.Figure(
        go.Bar(
            x=left,
            y=bars,
            width=each,
            offset=0,
            customdata=labels,
            marker={"color": BLUE, "line": {"width": 0}},
            hovertemplate="%{customdata}: %{y:,}<extra></extra>",
        )
    )
    figure.update_xaxes(title=title)
    return _finish(figure, 280, bargap=0)


def compared_figure(histograms: Mapping[str, Sequence[float]], labels: Sequence[object], title: str) -> go.Figure:
    """Histograms over the same bins, each as shares of its own sum, without trailing empty bins."""
    go = _graph()
    used = max((k + 1 for counts in histograms.values() for k, count in enumerate(counts) if count), default=1)
    figure = go.Figure()
    for (name, counts), color in zip(histograms.items(), (BLUE, ORANGE, GREEN, PURPLE), strict=False):
        total = sum(counts)
        trace = go.Bar(
            x=[str(label) for label in labels[:used]],
            y=[count / total for count in counts[:used]],
            customdata=list(counts[:used]),
            name=name,
            marker={"color": color, "line": {"width": 0}},
            hovertemplate="%{x}: %{customdata:,} (%{y:.1%})",
        )
        figure.add_trace(trace)
    figure.update_xaxes(title=title, type="category", nticks=16, tickangle=0)
    figure.update_yaxes(tickformat=".0%")
    return _finish(figure, 280, bargap=0.15, barmode="group", showlegend=len(histograms) > 1)


def shares_figure(shares: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """One bar per row, divided into shares."""
    go = _graph()
    figure = go.Figure()
    kinds = dict.fromkeys(kind for values in shares.values() for kind in values)
    for kind, color in zip(kinds, (BLUE, ORANGE, GREEN, PURPLE), strict=False):
        parts = [values.get(kind, 0) / max(sum(values.values()), 1) for values in shares.values()]
        trace = go.Bar(
            y=list(shares),
            x=parts,
            name=kind,
            orientation="h",
            marker={"color": color},
            texttemplate="%{x:.1%}",
            textposition="inside",
            insidetextanchor="middle",
            hovertemplate="%{x:.2%}",
        )
        figure.add_trace(trace)
    figure.update_xaxes(range=[0, 1], tickformat=".0%")
    figure = _finish(figure, 130 + 36 * len(shares), barmode="stack", bargap=0.35)
    return figure.update_layout(legend={"traceorder": "normal", "y": 1 + 0.6 / len(shares)})


def fertility_figure(values: Mapping[str, float]) -> go.Figure:
    """Tokens per word: one bar per language, in the given order from the top."""
    go = _graph()
    ordered = list(values.items())[::-1]
    figure = go.Figure(
        go.Bar(
            y=[re.sub(r"[^\w-]", "?", name)[:16] for name, _ in ordered],  # a label may not contain markup
            x=[value for _, value in ordered],
            orientation="h",
            marker={"color": BLUE},
            texttemplate="%{x:.3f}",
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.4f} tokens per word<extra></extra>",
        )
    )
    figure.update_xaxes(title="tokens per word", range=[0, 1.15 * max(values.values(), default=1)])
    figure.update_yaxes(type="category")
    return _finish(figure, 90 + 26 * len(values), bargap=0.35)


def frequencies_figure(ranks: Sequence[int], occurrences: Sequence[int]) -> go.Figure:
    """Occurrences by rank, both axes logarithmic: a straight line if the text obeys Zipf's law."""
    go = _graph()
    hover = "rank %{x:,}: %{y:,} times<extra></extra>"
    trace = go.Scatter(
        x=list(ranks), y=list(occurrences), mode="lines+markers", line={"color": BLUE}, hovertemplate=hover
    )
    figure = go.Figure(trace)
    figure.update_xaxes(title="rank", type="log", dtick=1)
    figure.update_yaxes(title="occurrences", type="log", dtick=1)
    return _finish(figure, 300)


def loss_figure(log: Sequence[Mapping[str, Any]], unigram: float | None) -> go.Figure:
    """Training and held-out loss by step, each with its unigram line; accuracy below."""
    from plotly.subplots import make_subplots

    go = _graph()
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.68, 0.32])
    for row, key, name, color, mode in (
        (1, "mlm_loss", "training loss", BLUE, "lines"),
        (1, "heldout_loss", "held-out loss", ORANGE, "lines+markers"),
        (1, "heldout_unigram", "unigram, held-out", GREY, "lines+markers"),
        (1, "pair_loss", "pair loss", PURPLE, "lines"),
        (2, "mlm_accuracy", "training accuracy", GREEN, "lines"),
        (2, "heldout_accuracy", "held-out accuracy", RED, "lines+markers"),
    ):
        points = [(line["step"], line[key]) for line in log if isinstance(line.get(key), int | float)]
        if points:
            steps, values = zip(*points, strict=True)
            trace = go.Scatter(x=steps, y=values, name=name, mode=mode, line={"color": color, "width": 2})
            figure.add_trace(trace, row, 1)
    if unigram is not None:
        _draw_entropy(figure, unigram)
        figure.add_trace(  # an invisible point, so that the range of the axis includes the line
            go.Scatter(x=[log[-1]["step"]], y=[unigram], mode="markers", opacity=0, showlegend=False, hoverinfo="skip"),
            1,
            1,
        )
    figure.update_yaxes(title="nats per masked token", row=1, col=1)
    figure.update_yaxes(title="accuracy", tickformat=".0%", row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    return _finish(figure, 460, hovermode="x unified")


def _draw_entropy(figure: go.Figure, entropy: float) -> None:
    label = {"text": f"unigram entropy {entropy:.3f}", "font": {"color": RED}}
    figure.add_hline(y=entropy, line={"dash": "dash", "color": RED}, label=label, row=1, col=1)


def losses_figure(
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], entropies: Set[float]
) -> go.Figure:
    """Losses of several runs over tokens read, held-out ones dotted, with unigram entropies; learning rates below."""
    from plotly.subplots import make_subplots

    go = _graph()
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.75, 0.25])
    for number, (name, curve) in enumerate(curves.items()):
        color = RUNS[number % len(RUNS)]
        for row, key, label, dash, mode in (
            (1, "mlm_loss", name, "solid", "lines"),
            (1, "heldout_loss", f"{name}, held-out", "dot", "lines+markers"),
            (2, "lr", f"{name}, learning rate", "solid", "lines"),
        ):
            if curve.get(key):
                tokens, values = zip(*curve[key], strict=True)
                style = {"color": color, "width": 2, "dash": dash}
                trace = go.Scatter(x=tokens, y=values, name=label, mode=mode, line=style, showlegend=row == 1)
                figure.add_trace(trace, row, 1)
    for entropy in sorted(entropies):
        _draw_entropy(figure, entropy)
    figure.update_yaxes(title="nats per masked token", row=1, col=1)
    figure.update_yaxes(title="learning rate", row=2, col=1)
    figure.update_xaxes(title="tokens read", row=2, col=1)
    return _finish(figure, 520, hovermode="x unified")


def scores_figure(scores: Mapping[str, float], chance: float = 0.5) -> go.Figure:
    """One bar per task with its share of correct answers, and a line at chance."""
    go = _graph()
    ordered = sorted(scores.items(), key=lambda item: item[1])
    figure = go.Figure(
        go.Bar(
            y=[name.replace("_", " ") for name, _ in ordered],
            x=[score for _, score in ordered],
            orientation="h",
            marker={"color": [GREEN if score > chance else GREY for _, score in ordered]},
            texttemplate="%{x:.1%}",
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        )
    )
    figure.add_vline(x=chance, line={"dash": "dash", "color": RED})
    figure.update_xaxes(range=[0, 1.08], tickformat=".0%")
    return _finish(figure, 80 + 22 * len(ordered), bargap=0.3)
