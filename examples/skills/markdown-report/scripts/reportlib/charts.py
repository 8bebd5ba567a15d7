"""Bar charts: as inline SVG for the page, as blocks of text for Markdown."""

from html import escape

BAR_HEIGHT, GAP, LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH = 20, 8, 180, 400, 120


def shares(bars):
    """Each bar as (start, length), both 0..1 of the width; negative values grow to the left of a common zero."""
    low = min(0.0, min(bar["value"] for bar in bars))
    high = max(0.0, max(bar["value"] for bar in bars))
    span = high - low or 1.0
    zero = -low / span
    return [(min(zero, (bar["value"] - low) / span), abs(bar["value"]) / span) for bar in bars]


def shorten(label, length):
    return label if len(label) <= length else label[: length - 1] + "…"


def to_svg(chart):
    bars = chart["bars"]
    height = len(bars) * (BAR_HEIGHT + GAP)
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    title = chart.get("title", "Bar chart")
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, quote=True)}">']
    for index, (bar, (start, length)) in enumerate(zip(bars, shares(bars))):
        top = index * (BAR_HEIGHT + GAP)
        middle = top + BAR_HEIGHT * 0.7
        shown = f"{bar['shown']} {chart['unit']}".strip()
        parts.append(
            f'<text x="{LABEL_WIDTH - 8}" y="{middle:.0f}" text-anchor="end">{escape(shorten(bar["label"], 26))}</text>'
            f'<rect x="{LABEL_WIDTH + start * BAR_WIDTH:.1f}" y="{top}" width="{max(length * BAR_WIDTH, 1):.1f}" '
            f'height="{BAR_HEIGHT}" rx="2"><title>{escape(bar["label"])}: {escape(shown)}</title></rect>'
            f'<text x="{LABEL_WIDTH + BAR_WIDTH + 8}" y="{middle:.0f}">{escape(shorten(shown, 18))}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)


def to_blocks(chart):
    bars = chart["bars"]
    lines = []
    width = min(26, max(len(bar["label"]) for bar in bars))
    for bar, (start, length) in zip(bars, shares(bars)):
        blocks = " " * round(start * 30) + "█" * max(1 if bar["value"] else 0, round(length * 30))
        lines.append(f"{shorten(bar['label'], 26):<{width}}  {blocks} {bar['shown']} {chart['unit']}".rstrip())
    return "\n".join(lines)
