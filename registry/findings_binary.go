package registry

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"path"
	"strings"
)

// office looks into an office document.
func (f *fileScan) office() {
	content := f.component.Content
	if bytes.HasPrefix(content, []byte(oleMagic)) {
		f.add(RuleOpaqueFile, 0, "an old office document that may hold macros; save it in the newer format")
		if bytes.Contains(content, []byte("_\x00V\x00B\x00A\x00_\x00P\x00R\x00O\x00J\x00E\x00C\x00T")) {
			f.add(RuleOfficeMacro, 0, "the document holds macros; save it without")
		}
		return
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if archive == nil || err != nil && len(archive.File) == 0 {
		f.add(RuleOpaqueFile, 0, "it should be an office document and cannot be read as one")
		return
	}
	for _, member := range archive.File {
		switch base := strings.ToLower(path.Base(strings.ReplaceAll(member.Name, `\`, "/"))); {
		case base == "vbaproject.bin", base == "vbadata.xml", strings.HasPrefix(strings.ToLower(member.Name), "basic/"), strings.HasPrefix(strings.ToLower(member.Name), "scripts/"):
			f.add(RuleOfficeMacro, 0, "the document holds macros (%s); save it without", shown(member.Name))
			return
		}
	}
	f.add(RuleOpaqueFile, 0, "an office document whose text the rules do not read; open it yourself")
}

// image looks at what a picture carries besides the picture.
func (f *fileScan) image() {
	content := f.component.Content
	switch {
	case bytes.HasPrefix(content, []byte(pngMagic)):
		text, end := pngText(content)
		f.carries(text, len(content)-end)
	case bytes.HasPrefix(content, []byte(jpegMagic)):
		f.carries(jpegText(content), 0)
	}
}

// metadataFree is how much text a picture may carry without a word: names of tools and cameras.
const metadataFree = 256

func (f *fileScan) carries(text, behind int) {
	if text > metadataFree {
		f.add(RuleImageMetadata, 0, "the picture carries %d bytes of text that is not shown; strip its metadata", text)
	}
	if behind > 0 {
		f.add(RuleImageMetadata, 0, "%d bytes follow the end of the picture; cut them off", behind)
	}
}

// pngText returns the bytes of text in the chunks of a PNG, and where it ends.
func pngText(content []byte) (text, end int) {
	at := len(pngMagic)
	for at+12 <= len(content) {
		size := int(binary.BigEndian.Uint32(content[at:]))
		if size > len(content)-at-12 {
			break
		}
		switch string(content[at+4 : at+8]) {
		case "tEXt", "zTXt", "iTXt", "eXIf":
			text += size
		case "IEND":
			return text, at + 12 + size
		}
		at += 12 + size
	}
	return text, len(content)
}

// jpegText returns the bytes of the comments and of the application segments that hold text, before the picture itself.
func jpegText(content []byte) int {
	text := 0
	for at := 2; at+4 <= len(content) && content[at] == 0xff; {
		marker, size := content[at+1], int(binary.BigEndian.Uint16(content[at+2:]))
		if marker == 0xda || size < 2 || at+2+size > len(content) {
			break
		}
		if marker == 0xfe || marker == 0xe1 {
			text += size - 2
		}
		at += 2 + size
	}
	return text
}
