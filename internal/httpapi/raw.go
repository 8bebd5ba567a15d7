package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"path"
	"strconv"

	"github.com/sallyport-dev/sallyport"
)

// raw is an answer of bytes that somebody else wrote: a component of a skill, an artifact of a run. It is sent so that no browser
// runs it.
type raw struct {
	path      string // names the download
	mediaType string
	content   []byte
	sum       [sha256.Size]byte
	header    map[string]string // more of ours
}

// newRaw refuses content that is not what its record says: such bytes are sent to nobody.
func newRaw(name, mediaType, sha256Hex string, content []byte) (*raw, error) {
	sum := sha256.Sum256(content)
	if hex.EncodeToString(sum[:]) != sha256Hex {
		return nil, &sallyport.Error{
			Op: "httpapi.raw", Code: sallyport.CodeInternal, Err: errors.New("stored content differs from its sha256: " + name),
		}
	}
	return &raw{path: name, mediaType: mediaType, content: content, sum: sum}, nil
}

const anyBytes = "application/octet-stream"

func (b *raw) write(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("Content-Type", plainMediaType(b.mediaType))
	header.Set("Content-Length", strconv.Itoa(len(b.content)))
	header.Set("Content-Disposition", disposition(b.path))
	header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(b.sum[:])+":") // RFC 9530
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	for name, value := range b.header {
		header.Set(name, value)
	}
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(b.content)
	return err
}

// plainMediaType is the stored media type when it is one, written anew, else bytes.
func plainMediaType(stored string) string {
	media, params, err := mime.ParseMediaType(stored)
	if err != nil {
		return anyBytes
	}
	if formatted := mime.FormatMediaType(media, params); formatted != "" {
		return formatted
	}
	return anyBytes
}

func disposition(name string) string {
	if formatted := mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}); formatted != "" {
		return formatted
	}
	return "attachment"
}

// wantsBytes reports whether an Accept header names application/octet-stream.
func wantsBytes(accept []string) bool { return accepts(accept, anyBytes) }
