package client

import (
	"context"
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

// ConfirmationList is the questions that wait for an answer.
type ConfirmationList struct {
	Confirmations []sallyport.Confirmation `json:"confirmations"`
}

// Confirmations lists the runs that wait for a person's yes, oldest first.
func (c *Client) Confirmations(ctx context.Context) (sallyport.Envelope[ConfirmationList], error) {
	return call[ConfirmationList](ctx, c, get("/v1/confirmations", nil))
}

// Approve says yes: the very same request of the principal that asked runs once, within ten minutes.
func (c *Client) Approve(ctx context.Context, id sallyport.ConfirmationID) (sallyport.Envelope[sallyport.Confirmation], error) {
	return c.decide(ctx, id, "/approve")
}

// Deny says no.
func (c *Client) Deny(ctx context.Context, id sallyport.ConfirmationID) (sallyport.Envelope[sallyport.Confirmation], error) {
	return c.decide(ctx, id, "/deny")
}

func (c *Client) decide(ctx context.Context, id sallyport.ConfirmationID, verb string) (sallyport.Envelope[sallyport.Confirmation], error) {
	path, err := idPath("/v1/confirmations", id)
	if err != nil {
		return sallyport.Envelope[sallyport.Confirmation]{}, err
	}
	return call[sallyport.Confirmation](ctx, c, request{method: http.MethodPost, path: path + verb})
}
