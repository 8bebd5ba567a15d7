"""Input and output of both scripts."""

import json
import os
import sys


MAX_RESULT_BYTES = 160 * 1024


class Fault(Exception):
    """What the caller can mend: a stable code and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


def read_text(name):
    """The text of an input file, line ends as \\n."""
    root = os.path.realpath(os.environ.get("SKILL_INPUT", "."))
    path = os.path.realpath(os.path.join(root, name))
    if "\0" in name or os.path.commonpath([root, path]) != root or not os.path.isfile(path):
        raise Fault("FILE_NOT_FOUND", f"no input file named {name!r} was sent with the call")
    with open(path, "rb") as source:
        data = source.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Fault("NOT_TEXT", f"{name} is not UTF-8: byte {error.start} fits no character") from None
    if "\0" in text:
        raise Fault("NOT_TEXT", f"{name} is not a text file")
    if not text.strip():
        raise Fault("EMPTY_INPUT", f"{name} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_output(value, spare=()):
    """Writes the result. When it is too large to be returned, the lists named in spare are cut and counted."""
    path = os.environ.get("SKILL_OUTPUT")
    data = encode(value)
    for name in spare:
        whole = len(value[name])
        while len(data) > MAX_RESULT_BYTES and value[name]:
            value[name] = value[name][: len(value[name]) // 2]
            value[f"{name}_left_out"] = value.get(f"{name}_left_out", 0) + whole - len(value[name])
            whole = len(value[name])
            data = encode(value)
    if path:
        with open(path, "wb") as out:
            out.write(data)


def encode(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")


def clip(text, length):
    return text if len(text) <= length else text[: length - 1] + "…"


def run(script):
    """Calls script(arguments) and returns its exit code; a Fault is exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return script(sys.argv[1:])
    except Fault as fault:
        write_output({"error": {"code": fault.code, "message": fault.message}})
        print(f"changelog-lint: {fault.message}", file=sys.stderr)
        return 2
