"""The report as Markdown (CommonMark with tables). Every value is escaped: none can start markup or HTML."""

import re

from .charts import to_blocks
from .inline import lines, paragraphs, tokens

# Everything that can begin inline markup or HTML. What only matters at the start of a line is handled by guard.
SPECIAL = re.compile(r"([\\`*_\[\]<>|~$])")
LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s|$)|[-+](?=[\s-]|$)|=+\s*$|(\d{1,9})([.)])(?=\s|$)|:(?=\s))")
CALLOUTS = {"note": "NOTE", "tip": "TIP", "warning": "WARNING", "danger": "CAUTION"}


def plain(text):
    return SPECIAL.sub(r"\\\1", text.replace("&", "&amp;"))


def heading(level, text):
    """A heading line; number signs at its end would be taken for a closing mark."""
    return "#" * level + " " + re.sub(r"#(?=#*$)", r"\\#", plain(text))


def guard(line):
    """Keeps a line of text from being read as a heading, a list, a rule or an underline."""
    found = LINE_START.match(line)
    if not found:
        return line
    if found[3]:
        return f"{found[1]}{found[3]}\\{line[found.start(4):]}"
    return f"{found[1]}\\{line[found.start(2):]}"


def code_span(text):
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def inline(text, in_table=False):
    out = []
    for kind, value in tokens(text):
        if kind == "text":
            out.append(plain(value))
        elif kind == "code":
            # A bar ends a cell even inside code, so there it must be escaped.
            out.append(code_span(value).replace("|", "\\|") if in_table else code_span(value))
        elif kind == "link":
            label, url = value
            out.append(f"[{plain(label)}](<{url.replace('|', '%7C')}>)")
        else:
            out.append("**" if kind == "bold" else "*")
    return "".join(out)


def block(text):
    """Paragraphs whose line breaks stay (a backslash at the end of a line)."""
    return "\n\n".join(
        "\\\n".join(guard(line) for line in inline("\n".join(part)).split("\n")) for part in paragraphs(text)
    )


def cell(text):
    return "<br>".join(inline(line, in_table=True) for line in lines(text))


def quoted(text):
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def table(data):
    marks = {"left": ":---", "right": "---:", "center": ":---:"}
    lines = []
    if "caption" in data:
        lines += [f"*{plain(data['caption'])}*", ""]
    lines.append("| " + " | ".join(plain(column["label"]) for column in data["columns"]) + " |")
    lines.append("| " + " | ".join(marks[column["align"]] for column in data["columns"]) + " |")
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in data["rows"]]
    return "\n".join(lines)


def fenced(text, language=""):
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{body}{fence}"


def to_markdown(report):
    parts = [heading(1, report["title"])]
    if "subtitle" in report:
        parts.append(f"*{plain(report['subtitle'])}*")
    byline = ", ".join(plain(report[field]) for field in ("author", "date") if field in report)
    if byline:
        parts.append(guard(byline))
    if "summary" in report:
        parts.append(quoted(block(report["summary"])))
    if report["contents"]:
        # Indented with spaces of their own: renderers make different anchors, so these are words and no links.
        entries = [
            "  " * (section["level"] - 2) + "- " + plain(section["heading"])
            for section in report["sections"]
            if "heading" in section
        ]
        parts.append("\n".join(["**Contents**", "", *entries]))
    for section in report["sections"]:
        parts += section_parts(section)
    return "\n\n".join(parts) + "\n"


def section_parts(section):
    parts = []
    if "heading" in section:
        parts.append(heading(section["level"], section["heading"]))
    if "text" in section:
        parts.append(block(section["text"]))
    if "metrics" in section:
        parts.append("\n".join(
            f"- **{plain(metric['label'])}:** {plain(metric['value'])}"
            + (f" ({plain(metric['note'])})" if "note" in metric else "")
            for metric in section["metrics"]
        ))
    if "list" in section:
        parts.append("\n".join(
            (f"{number}. " if section["ordered"] else "- ") + guard(inline(item))
            for number, item in enumerate(section["list"], start=1)
        ))
    if "table" in section:
        parts.append(table(section["table"]))
    if "chart" in section:
        if "title" in section["chart"]:
            parts.append(f"**{plain(section['chart']['title'])}**")
        parts.append(fenced(to_blocks(section["chart"]), "text"))
    if "code" in section:
        parts.append(fenced(section["code"]["text"], section["code"]["language"]))
    if "callout" in section:
        parts.append(quoted(f"[!{CALLOUTS[section['callout']['kind']]}]\n{block(section['callout']['text'])}"))
    return parts
