"""A changelog as releases, sections and entries, each with its line."""

import re
from dataclasses import dataclass, field

# None of these can backtrack over a long line: a changelog is somebody else's text.
RELEASE = re.compile(r"##[ \t]+(.*)\Z")
# Group 1: the name in brackets; group 2: what follows it.
BRACKETED = re.compile(r"\[([^\[\]]*)\](?:\([^)\s]*\))?[ \t]*(.*)\Z")
SECTION = re.compile(r"###[ \t]+(.*)\Z")
ENTRY = re.compile(r"[-*+][ \t]+(.*)\Z")
LINK = re.compile(r"\[([^\[\]]+)\]:[ \t]*(\S*)\Z")
FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z",
    re.ASCII,
)


@dataclass
class Section:
    name: str
    line: int
    entries: list = field(default_factory=list)  # (line, text)


@dataclass
class Release:
    name: str  # the version as written, or Unreleased
    line: int
    rest: str = ""  # what stands after the name
    bracketed: bool = False
    date: str = ""
    yanked: bool = False
    sections: list = field(default_factory=list)
    loose: list = field(default_factory=list)  # lines of entries above the first section
    start: int = 0  # the lines of the body, first and behind the last
    end: int = 0

    @property
    def unreleased(self):
        return self.name.casefold() == "unreleased"

    def has(self, *names):
        return any(section.name in names and section.entries for section in self.sections)


@dataclass
class Changelog:
    lines: list
    title: str = ""
    title_line: int = 0
    releases: list = field(default_factory=list)
    links: dict = field(default_factory=dict)  # name in lower case -> (line, url)
    repeated_links: list = field(default_factory=list)  # (line, name)
    stray: list = field(default_factory=list)  # (line, text): headings of the wrong level

    def body(self, release):
        """The Markdown below a release's heading, without link definitions."""
        kept = [line for line in self.lines[release.start : release.end] if not LINK.match(line)]
        return "\n".join(kept).strip("\n")


def parse(text):
    log = Changelog(lines=[line.rstrip() for line in text.split("\n")])
    release = section = None
    fence = None
    comment = False
    for number, line in enumerate(log.lines, start=1):
        if comment:
            comment = "-->" not in line
            continue
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and line.strip() == mark[1]:
                fence = None
            continue
        if mark:
            fence = mark[1]
            continue
        if line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            continue
        link = LINK.match(line)
        if link:
            key = link[1].casefold()
            if key in log.links:
                log.repeated_links.append((number, link[1]))
            else:
                log.links[key] = (number, link[2])
        elif line.startswith("# "):
            if log.title_line:
                log.stray.append((number, line))
            else:
                log.title, log.title_line = line[2:].strip(), number
        elif RELEASE.match(line):
            if release:
                release.end = number - 1
            release, section = read_release(RELEASE.match(line)[1], number), None
            release.start = number
            log.releases.append(release)
        elif SECTION.match(line):
            section = Section(SECTION.match(line)[1].rstrip("#").strip(), number)
            if release:
                release.sections.append(section)
            else:
                log.stray.append((number, line))
        elif re.match(r"#+[^# \t]", line) or line.startswith("####"):
            log.stray.append((number, line))
        else:
            entry = ENTRY.match(line)
            if not release or not line:
                continue
            if entry and section:
                section.entries.append((number, [entry[1]]))
            elif entry:
                release.loose.append(number)
            elif section and section.entries:
                section.entries[-1][1].append(line.strip())
    if release:
        release.end = len(log.lines)
    for release in log.releases:
        for section in release.sections:
            section.entries = [(number, "\n".join(parts)) for number, parts in section.entries]
    return log


def read_release(heading, number):
    heading = heading.strip()
    found = BRACKETED.match(heading)
    if found:
        release = Release(found[1].strip(), number, found[2].strip(), bracketed=True)
    else:
        name, _, rest = heading.partition(" ")
        release = Release(name, number, rest.strip())
    rest = release.rest
    if rest.endswith("[YANKED]"):
        release.yanked, rest = True, rest[: -len("[YANKED]")].rstrip()
    if rest[:1] in ("-", "\u2013", "\u2014"):
        rest = rest[1:]
    release.date = rest.strip()
    return release


def version_key(name):
    """What versions are ordered by (Semantic Versioning 11), or None when name is no version."""
    found = SEMVER.match(name) if len(name) <= 256 else None
    if not found:
        return None
    core = tuple(int(part) for part in found.groups()[:3])
    if found[4] is None:
        return core, (1,)
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in found[4].split("."))
    return core, (0, parts)
