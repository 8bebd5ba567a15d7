"""The report as one HTML page that needs nothing else and forbids itself scripts and network."""

import os
from html import escape

from .charts import to_svg
from .inline import lines, paragraphs, tokens

# Even if something slipped through the escaping, a browser may not run or load it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def inline(text):
    out = []
    for kind, value in tokens(text):
        if kind == "text":
            out.append(escape(value).replace("\n", "<br>\n"))
        elif kind == "code":
            out.append(f"<code>{escape(value)}</code>")
        elif kind == "link":
            label, url = value
            out.append(f'<a href="{escape(url, quote=True)}" rel="noopener noreferrer nofollow">{escape(label)}</a>')
        else:
            tag = "strong" if kind == "bold" else "em"
            out.append(f"<{tag}>" if value else f"</{tag}>")
    return "".join(out)


def block(text):
    return "\n".join("<p>" + inline("\n".join(part)) + "</p>" for part in paragraphs(text))


def cell(text):
    return "<br>".join(inline(line) for line in lines(text))


def table(data):
    out = ['<div class="scroll"><table>']
    if "caption" in data:
        out.append(f"<caption>{escape(data['caption'])}</caption>")
    classes = [column["align"] for column in data["columns"]]
    heads = "".join(
        f'<th scope="col" class="{align}">{escape(column["label"])}</th>' for align, column in zip(classes, data["columns"])
    )
    out.append(f"<thead><tr>{heads}</tr></thead>\n<tbody>")
    for row in data["rows"]:
        out.append("<tr>" + "".join(f'<td class="{align}">{cell(value)}</td>' for align, value in zip(classes, row)) + "</tr>")
    out.append("</tbody></table></div>")
    return "\n".join(out)


def metrics(items):
    cards = "".join(
        f'<div class="metric"><dt>{escape(item["label"])}</dt><dd>{escape(item["value"])}'
        + (f"<small>{escape(item['note'])}</small>" if "note" in item else "")
        + "</dd></div>"
        for item in items
    )
    return f'<dl class="metrics">{cards}</dl>'


def section_html(section, anchor):
    out = ["<section>"]
    if "heading" in section:
        level = section["level"]
        out.append(f'<h{level} id="{anchor}">{escape(section["heading"])}</h{level}>')
    if "text" in section:
        out.append(block(section["text"]))
    if "metrics" in section:
        out.append(metrics(section["metrics"]))
    if "list" in section:
        tag = "ol" if section["ordered"] else "ul"
        out.append(f"<{tag}>" + "".join(f"<li>{inline(item)}</li>" for item in section["list"]) + f"</{tag}>")
    if "table" in section:
        out.append(table(section["table"]))
    if "chart" in section:
        chart = section["chart"]
        caption = f"<figcaption>{escape(chart['title'])}</figcaption>" if "title" in chart else ""
        out.append(f"<figure>{caption}{to_svg(chart)}</figure>")
    if "code" in section:
        out.append(f"<pre><code>{escape(section['code']['text'])}</code></pre>")
    if "callout" in section:
        kind = section["callout"]["kind"]
        out.append(f'<aside class="{kind}"><b>{kind.capitalize()}</b>\n{block(section["callout"]["text"])}</aside>')
    out.append("</section>")
    return "\n".join(out)


def to_html(report):
    with open(os.path.join(os.path.dirname(__file__), "style.css"), encoding="utf-8") as source:
        style = source.read()
    title = escape(report["title"])
    out = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        "<header>",
        f"<h1>{title}</h1>",
    ]
    if "subtitle" in report:
        out.append(f'<p class="subtitle">{escape(report["subtitle"])}</p>')
    byline = ", ".join(escape(report[field]) for field in ("author", "date") if field in report)
    if byline:
        out.append(f'<p class="byline">{byline}</p>')
    out.append("</header>\n<main>")
    if "summary" in report:
        out.append(f'<div class="summary">{block(report["summary"])}</div>')
    anchors = [f"s{number}" for number in range(1, len(report["sections"]) + 1)]
    if report["contents"]:
        entries = "".join(
            f'<li class="l{section["level"]}"><a href="#{anchor}">{escape(section["heading"])}</a></li>'
            for anchor, section in zip(anchors, report["sections"])
            if "heading" in section
        )
        out.append(f"<nav><b>Contents</b><ul>{entries}</ul></nav>")
    out += [section_html(section, anchor) for anchor, section in zip(anchors, report["sections"])]
    out += ["</main>", "</body>", "</html>"]
    return "\n".join(out) + "\n"
