// Package mediatype names the media type of a file from its path and first bytes, by a table of its own: the same file has
// the same type on every host.
//
// It leaves trust to its callers: a media type is a label, never a decision. Its one invariant: the answer depends on
// nothing but its arguments.
package mediatype

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Of returns the media type of a file: by extension, else text/plain for valid UTF-8 without NUL, else
// application/octet-stream.
func Of(name string, content []byte) string {
	if known, ok := byExtension[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]; ok {
		return known
	}
	if Text(content) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// Text reports whether content is valid UTF-8 without NUL.
func Text(content []byte) bool {
	return utf8.Valid(content) && !bytes.Contains(content, []byte{0})
}

var byExtension = map[string]string{
	"bash": "text/x-shellscript", "cjs": "text/javascript", "css": "text/css", "csv": "text/csv", "gif": "image/gif",
	"go": "text/x-go", "gz": "application/gzip", "htm": "text/html", "html": "text/html", "ico": "image/x-icon",
	"jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
	"jsonl": "application/jsonl", "log": "text/plain", "md": "text/markdown", "mjs": "text/javascript", "mp3": "audio/mpeg",
	"mp4": "video/mp4", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png", "py": "text/x-python",
	"rb": "text/x-ruby", "rs": "text/x-rust", "sh": "text/x-shellscript", "sql": "application/sql", "svg": "image/svg+xml",
	"tar": "application/x-tar", "toml": "application/toml", "ts": "text/x-typescript", "tsv": "text/tab-separated-values",
	"ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/wav", "webp": "image/webp",
	"woff": "font/woff", "woff2": "font/woff2", "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml",
	"zip":  "application/zip",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
