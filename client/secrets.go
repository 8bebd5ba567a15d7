package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/secret"
)

// SecretList holds the tenant's secrets by name, without their values.
type SecretList struct {
	Secrets []sallyport.SecretInfo `json:"secrets"`
}

// Secrets lists the tenant's secrets. No call returns a value.
func (c *Client) Secrets(ctx context.Context) (sallyport.Envelope[SecretList], error) {
	return call[SecretList](ctx, c, get("/v1/secrets", nil))
}

// SetSecret stores a value under a name, over the one it had.
func (c *Client) SetSecret(ctx context.Context, name string, value sallyport.Secret) (sallyport.Envelope[sallyport.SecretInfo], error) {
	path, err := idPath("/v1/secrets", name)
	if err != nil {
		return sallyport.Envelope[sallyport.SecretInfo]{}, err
	}
	body := map[string]any{"value": string(value)}
	if !utf8.ValidString(string(value)) {
		body = map[string]any{"value_base64": []byte(value)}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return sallyport.Envelope[sallyport.SecretInfo]{}, &sallyport.Error{Op: "client.set_secret", Code: sallyport.CodeInternal}
	}
	return call[sallyport.SecretInfo](ctx, c, request{
		method: http.MethodPut, path: path, body: bytes.NewReader(data), media: "application/json",
	})
}

// SecretRemoval says that a secret is gone.
type SecretRemoval struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

// RemoveSecret removes a secret for every run that begins from now on.
func (c *Client) RemoveSecret(ctx context.Context, name string) (sallyport.Envelope[SecretRemoval], error) {
	path, err := idPath("/v1/secrets", name)
	if err != nil {
		return sallyport.Envelope[SecretRemoval]{}, err
	}
	return call[SecretRemoval](ctx, c, request{method: http.MethodDelete, path: path})
}

// RotateSecretKey encrypts every secret of the installation under a new key.
func (c *Client) RotateSecretKey(ctx context.Context) (sallyport.Envelope[secret.Rotation], error) {
	return call[secret.Rotation](ctx, c, request{method: http.MethodPost, path: "/v1/secrets/rotate-key"})
}
