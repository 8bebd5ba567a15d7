"""The one reader of inline text: **bold**, *italic*, `code` and [label](https://...), nothing else.

Both writers work on its tokens, so neither ever passes a caller's markup through.
"""

import re
import unicodedata

LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\(((?:https?://|mailto:)[^\s()<>\"'`\\]{1,2000})\)")
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
BACKTICKS, ASTERISKS = re.compile("`+"), re.compile(r"\*+")
# Control characters, and the marks that reorder text on the screen.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")


def clean(text):
    """Text without control characters, line ends as \\n."""
    return UNSAFE.sub("\ufffd", str(text).replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text):
    return " ".join(clean(text).split())


def lines(text):
    return [line.strip() for line in clean(text).strip().split("\n")]


def paragraphs(text):
    """The paragraphs of a text, each as its lines."""
    return [part.split("\n") for part in re.split(r"\n\n+", "\n".join(lines(text))) if part]


def tokens(text):
    """A flat list of (kind, value): text, code, link (value is (label, url)), and bold and italic with True to
    open and False to close. Marks that do not pair up stay text."""
    out, plain, position = [], [], 0

    def flush():
        if plain:
            out.append(("text", "".join(plain)))
            plain.clear()

    while position < len(text):
        character = text[position]
        if character == "\\" and text[position + 1 : position + 2] in ("*", "`", "[", "]", "\\"):
            plain.append(text[position + 1])
            position += 2
            continue
        found = CODE.match(text, position) if character == "`" else LINK.match(text, position) if character == "[" else None
        if found and character == "`":
            flush()
            out.append(("code", " ".join(found[2].split()) or " "))
            position = found.end()
        elif found:
            flush()
            out.append(("link", (found[1], found[2])))
            position = found.end()
        elif character == "`":  # a run that never closes
            run = BACKTICKS.match(text, position)
            plain.append(run[0])
            position = run.end()
        elif character == "*":
            run = ASTERISKS.match(text, position)
            flush()
            out.append(("mark", (len(run[0]), text[position - 1 : position], text[run.end() : run.end() + 1])))
            position = run.end()
        else:
            plain.append(character)
            position += 1
    flush()
    return pair_marks(out)


def is_space(character):
    return not character or character.isspace()


def is_punctuation(character):
    return bool(character) and unicodedata.category(character)[0] in "PS"


def pair_marks(parts):
    """Turns the asterisk runs that pair up, at most two deep, into bold and italic; the others back into text. A run
    opens and closes by CommonMark's flanking rule, so that both writers show the same."""
    open_at, result = [], []
    for kind, value in parts:
        if kind != "mark":
            result.append((kind, value))
            continue
        run, before, after = value
        name = {1: "italic", 2: "bold"}.get(run)
        can_open = not is_space(after) and (not is_punctuation(after) or is_space(before) or is_punctuation(before))
        can_close = not is_space(before) and (not is_punctuation(before) or is_space(after) or is_punctuation(after))
        if name and can_close and open_at and open_at[-1][0] == name and open_at[-1][1] < len(result) - 1:
            _, index = open_at.pop()
            result[index] = (name, True)
            result.append((name, False))
            continue
        if name and can_open and all(other != name for other, _ in open_at):
            open_at.append((name, len(result)))
        result.append(("text", "*" * run))
    return result
