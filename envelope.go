package sallyport

// Envelope is the one shape that every surface returns, for success, refusal and outcome. Data is null when
// the call was refused or broke; a finished run that did not succeed has both Data and Error.
type Envelope[T any] struct {
	Kind      string       `json:"kind"`
	Data      *T           `json:"data"`
	Error     *PublicError `json:"error"`
	RequestID string       `json:"request_id"`
}

// Success wraps data.
func Success[T any](kind, requestID string, data T) Envelope[T] {
	return Envelope[T]{Kind: kind, Data: &data, RequestID: requestID}
}

// Failure wraps err without data.
func Failure[T any](kind, requestID string, err error) Envelope[T] {
	return Envelope[T]{Kind: kind, Error: Public(err), RequestID: requestID}
}
