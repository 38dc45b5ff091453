"""The page: one file of HTML that needs nothing but the figures beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from holdfast.paper.report.picture import Picture
from holdfast.paper.report.results import Results
from holdfast.paper.report.sheet import NotRun, Sheet
from holdfast.paper.report.summary import Bar

PagePart = Sheet | Picture | NotRun


class Section(NamedTuple):
    """Some tables and figures under one heading."""

    name: str
    title: str
    parts: list[PagePart]


_CSS = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c9c9c9;
  --soft: #f3f3f3; --link: #00528a; --good: #00664b; --low: #00528a; --high: #a13f00;
  --bad: #b00020; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #161616; --line: #4a4a4a;
  --soft: #242424; --link: #7cc4f5; --good: #5fd3ae; --low: #7cc4f5; --high: #ffab70;
  --bad: #ff8a96; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); }
a { color: var(--link); }
p, li, pre { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
tbody th { font-weight: normal; }
th.label { text-align: left; }
tr.paper { background: var(--soft); }
td.agrees, td.holds { color: var(--good); }
td.better { color: var(--low); }
td.differs { color: var(--high); }
td.fails { color: var(--bad); font-weight: bold; }
figure { margin: 1.5rem 0; }
figure img { display: block; width: 100%; max-width: 60rem; height: auto; background: #ffffff;
  padding: 0.5rem; }
figcaption, .caption { max-width: 50rem; }
.files { font-size: 0.85rem; }
.alarm { border: 3px solid var(--bad); padding: 0.5rem 1rem; margin: 1rem 0; }
.note, .missing { border-left: 4px solid var(--line); padding: 0.3rem 1rem; margin: 1rem 0;
  background: var(--soft); }
pre { white-space: pre-wrap; font-size: 0.85rem; }
@media print { body { max-width: none; font-size: 9pt; } .wide { overflow: visible; }
  figure, tr { break-inside: avoid; } table { font-size: 7pt; } th, td { white-space: normal; } }
"""


def write_page(results: Results, sections: list[Section], verdicts: Sheet, bars: list[Bar]) -> str:
    """Put everything into one page."""
    title = f"Reproduction of “{results.paper.title}”"
    body = [
        f"<h1>{escape(title)}</h1>",
        "<p>Made by <code>holdfast reproduce</code> from one table of results.</p>",
        *_alarms(results, bars),
        _contents(sections),
        *_summary(verdicts, bars),
        *(line for section in sections for line in _section(section)),
        *_made(results.about),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _alarms(results: Results, bars: list[Bar]) -> Iterator[str]:
    failed = results.about.get("failed", [])
    if failed:
        yield '<div class="alarm"><p><strong>✗ Parts of this run failed.</strong></p><ul>'
        for why in dict.fromkeys(item["why"] for item in failed):
            pieces = "; ".join(item["piece"] for item in failed if item["why"] == why)
            yield f"<li>{escape(pieces)}: {escape(why)}</li>"
        yield "</ul></div>"
    for bar in bars:
        if bar.must and bar.holds is False:
            what = f"{escape(bar.what)}: {escape(bar.detail)}"
            yield f'<div class="alarm"><p><strong>✗ Does not hold.</strong> {what}</p></div>'
    if results.quick:
        yield (
            '<div class="note"><p>A quick run: only a part of the folds and settings. Figures are '
            "not those of the full reproduction.</p></div>"
        )
    for item in results.about.get("absent", []):
        what, why = escape(item["what"]), escape(item["why"])
        strong = f"<strong>Not run: data absent: {what}.</strong>"
        yield f'<div class="note"><p>{strong} {why}</p></div>'
    left = Counter(piece.partition(",")[0] for piece in results.about.get("not_run", []))
    if left:
        parts = "; ".join(f"{part} ({count})" for part, count in left.items())
        yield (
            '<div class="note"><p><strong>Not run yet</strong> (number of pieces): '
            f"{escape(parts)}. What is shown of these may lack methods or folds.</p></div>"
        )


def _contents(sections: list[Section]) -> str:
    names = [("summary", "Summary"), *[(s.name, s.title) for s in sections]]
    names.append(("made", "What made this"))
    items = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in names)
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


def _summary(verdicts: Sheet, bars: list[Bar]) -> Iterator[str]:
    yield '<h2 id="summary">Summary</h2>'
    yield "<ul>"
    for bar in bars:
        word = {True: "✓ holds", False: "✗ does not hold", None: "not run"}[bar.holds]
        detail = f" ({escape(bar.detail)})" if bar.detail else ""
        yield f"<li>{escape(bar.what)}: <strong>{word}</strong>{detail}</li>"
    yield "</ul>"
    yield from _table(verdicts)


def _section(section: Section) -> Iterator[str]:
    yield f'<section>\n<h2 id="{section.name}">{escape(section.title)}</h2>'
    for part in section.parts:
        if isinstance(part, NotRun):
            yield f"<h3>{escape(part.title)}</h3>"
            yield f'<p class="missing"><strong>Not run:</strong> {escape(part.why)}.</p>'
        elif isinstance(part, Sheet):
            yield from _table(part)
        else:
            yield from _figure(part)
    yield "</section>"


def _table(sheet: Sheet) -> Iterator[str]:
    yield f'<h3 id="table-{sheet.name}">{escape(sheet.title)}</h3>'
    yield f'<p class="caption">{escape(sheet.caption)}</p>'
    yield f'<div class="wide">\n<table aria-labelledby="table-{sheet.name}">\n<thead><tr>'
    for k, text in enumerate(sheet.header):
        label = ' class="label"' if k < sheet.labels else ""
        lines = "<br>".join(escape(line) for line in text.split(", "))
        yield f'<th scope="col"{label}>{lines}</th>'
    yield "</tr></thead>\n<tbody>"
    for row in sheet.rows:
        paper = any(c.lines == ("paper",) for c in row)
        cells = "".join(_cell(c.lines, c.mark, k < sheet.labels) for k, c in enumerate(row))
        yield ('<tr class="paper">' if paper else "<tr>") + cells + "</tr>"
    yield "</tbody>\n</table>\n</div>"
    links = ", ".join(f'<a href="tables/{sheet.name}.{kind}">{word}</a>'
                      for kind, word in (("csv", "CSV in full precision"), ("md", "Markdown"),
                                         ("tex", "LaTeX")))  # fmt: skip
    yield f'<p class="files">{links}</p>'


def _cell(lines: tuple[str, ...], mark: str, label: bool) -> str:
    text = "<br>".join(escape(line) for line in lines)
    if label:
        return f'<th scope="row" class="label">{text}</th>'
    return f'<td class="{mark}">{text}</td>' if mark else f"<td>{text}</td>"


def _figure(picture: Picture) -> Iterator[str]:
    title, caption = escape(picture.title), escape(picture.caption)
    yield f'<h3 id="figure-{picture.name}">{title}</h3>\n<figure>'
    yield f'<img src="figures/{picture.name}.svg" alt="{title}" loading="lazy">'
    yield f'<figcaption>{caption} <a href="figures/{picture.name}.png">PNG</a></figcaption>'
    yield "</figure>"


def _made(about: dict[str, Any]) -> Iterator[str]:
    yield '<h2 id="made">What made this</h2>\n<ul>'
    versions = ", ".join(f"{name} {version}" for name, version in about.get("versions", {}).items())
    facts = {
        "holdfast": about.get("holdfast"),
        "with": versions,
        "made": about.get("made"),
        "took": f"{about['seconds']:.0f} s" if "seconds" in about else None,
        "machine": about.get("machine"),
    }
    for name, fact in facts.items():
        yield f"<li>{name}: {escape(str(fact or 'not said'))}</li>"
    yield "</ul>\n<p>Settings of the run (folds and people are counted from 0):</p>"
    yield f"<pre>{escape(json.dumps(about.get('settings', {}), indent=1))}</pre>"
    others = {
        k: v for k, v in about.items() if k not in {*facts, "versions", "seconds", "settings"}
    }
    yield f"<pre>{escape(json.dumps(others, indent=1))}</pre>"
