package client

import (
	"errors"
	"io"
	"sync"
)

// watched remembers why its reader failed: over the network, the server only sees an archive that ends early.
type watched struct {
	r io.Reader

	mu  sync.Mutex
	err error
}

// Read reads on.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	}
	return n, err
}

func (w *watched) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
