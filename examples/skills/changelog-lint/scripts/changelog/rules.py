"""The rules. Each yields problems: (rule, severity, line, message)."""

import re
from datetime import date

from .model import version_key

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def lint(log, links=True, release=None):
    problems = [*shape(log), *order(log)]
    for entry in log.releases:
        problems.extend(heading(entry))
        problems.extend(sections(entry))
    problems.extend(bumps(log))
    if links:
        problems.extend(link_rules(log))
    if release is not None:
        problems.extend(ready(log, release))
    return sorted(problems, key=lambda found: (found[2], found[0]))


def shape(log):
    if not log.title_line:
        yield "title", "error", 1, "the file has no title; begin it with '# Changelog'"
    elif log.title.casefold() not in ("changelog", "change log"):
        yield "title", "warning", log.title_line, "the title is usually '# Changelog'"
    for line, text in log.stray:
        if text.startswith("# "):
            yield "heading-level", "error", line, "a second title; releases are '## [1.2.3] - 2024-01-31'"
        elif re.match(r"#+[^# \t]", text):
            yield "heading-level", "error", line, "a blank is missing after the number signs, so this is no heading"
        else:
            yield "heading-level", "error", line, "a heading of this level does not belong here: '##' is a release, '###' a section of one"
    if not log.releases:
        yield "no-releases", "error", 1, "there is no release; add '## [Unreleased]' or '## [1.0.0] - 2024-01-31'"


def order(log):
    seen = {}
    for index, release in enumerate(log.releases):
        name = release.name.casefold()
        if name in seen:
            yield "duplicate-release", "error", release.line, f"{release.name} stands here and on line {seen[name]}; merge the two"
        seen.setdefault(name, release.line)
        if release.unreleased and index > 0:
            yield "unreleased-first", "error", release.line, "Unreleased belongs above all releases"
    dated = [(version_key(release.name), release) for release in log.releases if version_key(release.name)]
    for (key, release), (below_key, below) in zip(dated, dated[1:]):
        if key < below_key:
            yield "version-order", "error", below.line, f"{below.name} is newer than {release.name} above it; newest first"
        if is_date(release.date) and is_date(below.date) and release.date < below.date and key > below_key:
            # A patch of an old line may come out later, so this is not an error.
            yield "date-order", "warning", release.line, f"{release.name} is dated before {below.name}, which it follows"


def is_date(text):
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def heading(release):
    line = release.line
    if release.unreleased:
        if release.date or release.yanked:
            yield "unreleased-date", "error", line, "Unreleased has no date; give it a version when it is released"
        return
    if version_key(release.name) is None:
        bare = re.sub(r"^[vV]", "", release.name)
        hint = f"write {bare}" if version_key(bare) else "a version is MAJOR.MINOR.PATCH, such as 1.4.0"
        yield "version", "error", line, f"{release.name!r} is not a semantic version; {hint}"
    if not release.date:
        yield "date-missing", "error", line, f"{release.name} has no date; write '## [{release.name}] - 2024-01-31'"
    elif not is_date(release.date):
        yield "date", "error", line, f"{release.date!r} is not a date such as 2024-01-31"
    elif not re.match(r"- \d", release.rest):
        yield "date-separator", "warning", line, "the date is set off by ' - ', a hyphen between blanks"


def sections(release):
    seen = {}
    for section in release.sections:
        if section.name not in KINDS:
            near = next((kind for kind in KINDS if kind.casefold() == section.name.casefold()), None)
            hint = f"write {near}" if near else f"the sections are {', '.join(KINDS)}"
            yield "section", "error", section.line, f"{section.name!r} is not a section of a changelog; {hint}"
        if section.name in seen:
            yield "duplicate-section", "error", section.line, f"{section.name} stands here and on line {seen[section.name]}; merge the two"
        seen.setdefault(section.name, section.line)
        if not section.entries:
            yield "empty-section", "error", section.line, f"{section.name} has no entries; leave it out"
        known = {}
        for line, text in section.entries:
            if not text.strip():
                yield "empty-entry", "error", line, "the entry says nothing"
                continue
            words = " ".join(text.casefold().split())
            if words in known:
                yield "duplicate-entry", "warning", line, f"the same entry stands on line {known[words]}"
            known.setdefault(words, line)
            if re.match(r"(Merge (pull request|branch)|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b|wip\b)", text, re.IGNORECASE):
                yield "entry-style", "warning", line, "this reads like a commit; say what changed for a user"
    for line in release.loose:
        yield "entry-outside", "error", line, "the entry stands in no section; put it below '### Added' or another one"
    if not release.unreleased and not release.sections and not release.loose and not release.yanked:
        yield "empty-release", "warning", release.line, f"{release.name} lists no change"


def bumps(log):
    """Does a version number fit what the release says?"""
    versions = [(version_key(release.name), release) for release in log.releases]
    stable = [(key, release) for key, release in versions if key and key[1] == (1,)]
    for (key, release), (below, _) in zip(stable, stable[1:]):
        (major, minor, patch), (old_major, old_minor, old_patch) = key[0], below[0]
        if key[0] <= below[0]:
            continue
        if major == old_major and minor == old_minor:
            if release.has("Added", "Deprecated"):
                yield "bump", "warning", release.line, f"{release.name} adds or deprecates something; that is a new minor version"
            if major > 0 and release.has("Removed"):
                yield "bump", "warning", release.line, f"{release.name} removes something; that is a new major version"
            if patch > old_patch + 1:
                yield "gap", "warning", release.line, f"between {release.name} and {major}.{minor}.{old_patch} a version is missing"
        elif major == old_major:
            if major > 0 and release.has("Removed"):
                yield "bump", "warning", release.line, f"{release.name} removes something; that is a new major version"
            if patch:
                yield "gap", "warning", release.line, f"{major}.{minor}.0 is missing below {release.name}"
        elif minor or patch:
            yield "gap", "warning", release.line, f"{major}.0.0 is missing below {release.name}"


def link_rules(log):
    for line, name in log.repeated_links:
        yield "duplicate-link", "error", line, f"the link [{name}] is defined twice; the first one wins"
    used = set()
    bracketed = [release for release in log.releases if release.bracketed]
    for release in bracketed:
        key = release.name.casefold()
        used.add(key)
        inline = "](" in log.lines[release.line - 1]
        if key not in log.links and not inline and log.links:
            yield "link-missing", "error", release.line, f"[{release.name}] has no link definition at the end of the file"
    body = "\n".join(line for line in log.lines if not re.match(r"\[[^\[\]]+\]:", line)).casefold()
    for key, (line, url) in log.links.items():
        if not re.match(r"https?://[^\s/]+", url):
            yield "link-target", "error", line, f"the link [{key}] does not lead to an http or https address"
        elif key in used and version_key(key) and key not in url.casefold().replace("%2b", "+"):
            yield "link-target", "warning", line, f"the link [{key}] does not mention {key}: was it copied from another release?"
        if key not in used and f"[{key}]" not in body:
            yield "link-unused", "warning", line, f"nothing uses the link [{key}]"


def ready(log, wanted):
    released = [release for release in log.releases if not release.unreleased]
    if version_key(wanted) is None:
        yield "release", "error", 1, f"{wanted!r} is not a semantic version"
    elif not released or released[0].name != wanted:
        newest = released[0].name if released else "none"
        yield "release", "error", released[0].line if released else 1, f"{wanted} is not the newest release; that is {newest}"
    for release in log.releases:
        if release.unreleased and any(section.entries for section in release.sections):
            yield "release", "error", release.line, f"entries are still under Unreleased; move them to {wanted} or say why they wait"
