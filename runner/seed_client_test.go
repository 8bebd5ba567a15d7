package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// seedRequest and seedResult are what the first seed's example client takes and gives.
type seedRequest struct {
	TenantID, Interpreter, Content, ContentSHA256 string
	ArgumentsJSON                                 *string
	TimeoutSeconds                                float64
	MaxOutputBytes                                int
}

type seedResult struct {
	ExitCode                      *int
	StandardOutput, StandardError string
	Truncated, TimedOut           bool
}

// seedClient is the example client of the first seed, line by line: it posts an anonymous object to "runs" and knows five
// fields of the answer. Its HTTP client carries the key, as an HttpClient with a default header does.
type seedClient struct {
	runner *http.Client
	base   string
}

func (c seedClient) execute(ctx context.Context, request seedRequest) (seedResult, error) {
	content, err := json.Marshal(struct {
		Tenant         string  `json:"tenant"`
		Runtime        string  `json:"runtime"`
		Source         string  `json:"source"`
		SourceSHA256   string  `json:"sourceSha256"`
		StandardInput  *string `json:"standardInput"`
		TimeoutSeconds float64 `json:"timeoutSeconds"`
		MaxOutputBytes int     `json:"maxOutputBytes"`
	}{
		request.TenantID, request.Interpreter, request.Content, request.ContentSHA256, request.ArgumentsJSON,
		request.TimeoutSeconds, request.MaxOutputBytes,
	})
	if err != nil {
		return seedResult{}, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/runs", bytes.NewReader(content))
	if err != nil {
		return seedResult{}, err
	}
	post.Header.Set("Content-Type", "application/json; charset=utf-8")
	response, err := c.runner.Do(post)
	if err != nil {
		return seedResult{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return seedResult{}, fmt.Errorf("response status code does not indicate success: %d", response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return seedResult{}, err
	}
	var outcome *struct {
		ExitCode       *int
		StandardOutput string
		StandardError  string
		Truncated      bool
		TimedOut       bool
	}
	if err := json.Unmarshal(body, &outcome); err != nil {
		return seedResult{}, err
	}
	if outcome == nil {
		return seedResult{}, errors.New("the runner service returned no outcome")
	}
	result := seedResult{
		ExitCode: outcome.ExitCode, StandardOutput: outcome.StandardOutput, StandardError: outcome.StandardError,
		Truncated: outcome.Truncated, TimedOut: outcome.TimedOut,
	}
	if outcome.TimedOut {
		result.ExitCode = nil
	}
	return result, nil
}

// bearer sends the key with every request.
type bearer struct{ key string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}
