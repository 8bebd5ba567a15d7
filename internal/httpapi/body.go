package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// decode reads the JSON body into v, strictly. An absent body is refused.
func (c *call) decode(v any) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return invalid("the body is empty; send a JSON object as application/json")
	}
	return strictjson.Decode(body, v)
}

// decodeOptional is decode for routes whose body may be absent.
func (c *call) decodeOptional(v any) error {
	body, err := c.body()
	if err != nil || len(body) == 0 {
		return err
	}
	return strictjson.Decode(body, v)
}

// noBody refuses a body that says anything.
func (c *call) noBody() error { return c.decodeOptional(&struct{}{}) }

// body reads a bounded JSON body. An empty body needs no Content-Type.
func (c *call) body() ([]byte, error) {
	if err := c.checkEncoding(); err != nil {
		return nil, err
	}
	limit := c.api.cfg.MaxBodyBytes
	if c.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	declared := c.mediaType()
	if declared != "" && declared != "application/json" {
		return nil, invalid("the Content-Type is %q; send JSON as application/json", bound(c.r.Header.Get("Content-Type")))
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	if err != nil {
		return nil, c.readFault(err)
	}
	if len(body) > 0 && declared == "" {
		return nil, invalid("the Content-Type is missing; send JSON as application/json")
	}
	return body, nil
}

// checkEncoding refuses compressed bodies: a small body must not become a large one behind the limit.
func (c *call) checkEncoding() error {
	switch strings.ToLower(c.r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return nil
	}
	return invalid("a body with a Content-Encoding is not accepted; send it plain")
}

// mediaType is the declared type in lower case, empty when absent, "?" when malformed or in a charset other than UTF-8.
func (c *call) mediaType() string {
	header := c.r.Header.Get("Content-Type")
	if header == "" {
		return ""
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil {
		return "?"
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return "?"
	}
	return media
}

func (c *call) readFault(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(large.Limit)
	}
	if cause := c.ctx().Err(); cause != nil {
		return cause
	}
	return &sallyport.Error{
		Op: "httpapi.body", Code: sallyport.CodeInvalidArgument, Message: "the body ends too early or cannot be read", Err: err,
	}
}

func tooLarge(limit int64) error {
	return &sallyport.Error{
		Op: "httpapi.body", Code: sallyport.CodeRequestTooLarge,
		Message: "the body is over the limit of " + strconv.FormatInt(limit, 10) + " bytes",
		Details: map[string]any{"limit_bytes": limit},
	}
}

// content is the bytes of a file, as text or as base64; place is its JSON pointer.
func content(place string, text, encoded *string) ([]byte, error) {
	switch {
	case text != nil && encoded != nil:
		return nil, invalid("%s has both content and content_base64; send one", place)
	case text != nil:
		return []byte(*text), nil
	case encoded != nil:
		data, err := base64.StdEncoding.Strict().DecodeString(*encoded)
		if err != nil || strings.ContainsAny(*encoded, "\r\n") {
			return nil, invalid("%s/content_base64 is not standard base64 with padding", place)
		}
		return data, nil
	}
	return nil, invalid("%s has neither content nor content_base64; send one", place)
}

// texts reads a list of strings: nil when absent, not nil when empty. A null among them is refused, because a decoder makes an
// empty string of it.
func texts(place string, sent []*string) ([]string, error) {
	if sent == nil {
		return nil, nil
	}
	out := make([]string, 0, len(sent))
	for i, text := range sent {
		if text == nil {
			return nil, invalid("%s/%d must be a string, not null", place, i)
		}
		out = append(out, *text)
	}
	return out, nil
}

// instant parses an optional RFC 3339 time; absent and empty are nil.
func instant(place string, text *string) (*time.Time, error) {
	if text == nil || *text == "" {
		return nil, nil //nolint:nilnil // An absent time is no fault.
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return nil, invalid("%s must be an RFC 3339 time such as 2026-01-31T12:00:00Z", place)
	}
	at = at.UTC()
	return &at, nil
}

// mostSeconds keeps a timeout within what a duration can hold; the run judges the real range.
const mostSeconds = 1_000_000_000

// seconds reads a timeout. Absent is zero; a zero that was sent is refused here, so that it never means absent.
func seconds(place string, value json.RawMessage) (time.Duration, error) {
	text := strings.TrimSpace(string(value))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > mostSeconds:
		return 0, invalid("%s is far too large; leave it out for the default", place)
	case err != nil:
		return 0, invalid("%s must be a whole number of seconds, such as 30; got %s", place, bound(text))
	case n < 1:
		return 0, invalid("%s must be at least 1, got %d; leave it out for the default", place, n)
	}
	return time.Duration(n) * time.Second, nil
}
