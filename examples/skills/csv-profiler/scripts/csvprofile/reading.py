"""From bytes to a table: encoding, delimiter, header, rows."""

import codecs
import csv
import io
import os
import re
from dataclasses import dataclass, field

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
BINARY_MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; export the sheet as CSV first",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; export the sheet as CSV first",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"PAR1": "a Parquet file",
    b"SQLite format 3\x00": "an SQLite database",
}
MAX_COLUMNS = 4096
CONTROLS = re.compile(r"[\x01-\x08\x0b\x0e-\x1f\x7f]")


class InputError(Exception):
    """What the caller can mend: a stable code and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass
class Table:
    header: list
    rows: list  # of lists, as long as the file had them
    delimiter_name: str
    encoding: str
    has_header: bool
    truncated: bool = False
    open_quote: bool = False
    notes: list = field(default_factory=list)  # (code, count)

    def column(self, index):
        """The cells of one column; a row that is too short has no cell there (None)."""
        return [row[index] if index < len(row) else None for row in self.rows]


def read_source(arguments, folder):
    """The bytes to profile: a file that came with the call, or the text argument."""
    if "text" in arguments:
        return arguments["text"].encode("utf-8", errors="replace")
    name = arguments["file"]
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if "\0" in name or os.path.commonpath([root, path]) != root or not os.path.isfile(path):
        sent = sorted(
            os.path.relpath(os.path.join(base, leaf), root) for base, _, leaves in os.walk(root) for leaf in leaves
        )[:10]
        names = ", ".join(sent) if sent else "none"
        raise InputError("FILE_NOT_FOUND", f"no input file named {name!r} was sent; files received: {names}")
    with open(path, "rb") as source:
        return source.read()


def decode(data, encoding):
    """Text, the encoding that was used, and whether it was only a guess."""
    if encoding == "auto":
        if data.startswith(codecs.BOM_UTF8):
            encoding = "utf-8"
        elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        else:
            try:
                return data.decode("utf-8"), "utf-8", False
            except UnicodeDecodeError:
                try:
                    return data.decode("cp1252"), "windows-1252", True
                except UnicodeDecodeError:
                    return data.decode("latin-1"), "latin-1", True
    codec = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "windows-1252": "cp1252", "latin-1": "latin-1"}[encoding]
    try:
        return data.decode(codec), encoding, False
    except UnicodeDecodeError as error:
        raise InputError(
            "BAD_ENCODING", f"byte {error.start} of the input is not valid {encoding}; try encoding auto"
        ) from None


def parse(text, delimiter, limit):
    """At most limit records that are not blank lines."""
    csv.field_size_limit(max(len(text), 131_072))
    records = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if not record:
                continue
            records.append(record)
            if len(records) >= limit:
                break
    except csv.Error as error:
        raise InputError("BAD_CSV", f"record {len(records) + 1} cannot be read: {error}") from None
    return records


def guess_delimiter(text):
    """The delimiter that cuts the first records into the same number of fields, the most fields winning."""
    end = text.find("\n", 64 * 1024)
    sample = text if end < 0 else text[: end + 1]
    best, best_score = "comma", (0.0, 0)
    for name, character in DELIMITERS.items():
        if character not in sample:
            continue
        widths = [len(record) for record in parse(sample, character, 200)]
        usual = max(set(widths), key=lambda width: (widths.count(width), width))
        if usual < 2:
            continue
        score = (round(widths.count(usual) / len(widths), 2), usual)
        if score > best_score:
            best, best_score = name, score
    return best


def read_table(data, delimiter, encoding, has_header, max_rows):
    for magic, what in BINARY_MAGIC.items():
        if data.startswith(magic):
            raise InputError("NOT_TEXT", f"the input is {what}")
    text, encoding, guessed = decode(data, encoding)
    notes = [("encoding_fallback", 1)] if guessed else []
    zeros = text.count("\0")
    if zeros:
        if zeros > len(text) // 10:
            raise InputError("NOT_TEXT", "the input is binary, or UTF-16 without a byte order mark (try encoding utf-16)")
        text = text.replace("\0", "")
        notes.append(("null_bytes", zeros))
    controls = len(CONTROLS.findall(text))
    if controls > len(text) // 20:
        raise InputError("NOT_TEXT", "the input is binary: one character in twenty or more is a control character")
    if not text.strip():
        raise InputError("EMPTY_INPUT", "the input holds no rows")

    name = guess_delimiter(text) if delimiter == "auto" else delimiter
    records = parse(text, DELIMITERS[name], max_rows + (2 if has_header else 1))
    width = max(len(record) for record in records[:1000])
    if width > MAX_COLUMNS:
        raise InputError("NOT_TEXT", f"the input has {width} columns, more than {MAX_COLUMNS}: is it a table?")
    if has_header:
        header, records = [cell.strip() for cell in records[0]], records[1:]
    else:
        header = [f"column_{number}" for number in range(1, width + 1)]
    truncated = len(records) > max_rows
    open_quote = not truncated and text.count('"') % 2 == 1 and bool(records) and "\n" in records[-1][-1]
    return Table(header, records[:max_rows], name, encoding, has_header, truncated, open_quote, notes)
