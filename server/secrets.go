package server

import (
	"context"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/secret"
)

// secretKeys is what encrypts secrets: the configured provider, else a key file. The file is never made anew while secrets are
// stored that only the old one opens.
func (s *Server) secretKeys() secret.KeyProvider { //nolint:ireturn // it is one or the other
	if s.cfg.SecretKeys != nil {
		return s.cfg.SecretKeys
	}
	path := s.cfg.SecretKeyFile
	if path == "" {
		path = filepath.Join(s.cfg.DataDir, secretsFile)
	}
	return secret.NewKeyFile(path, func(ctx context.Context) (bool, error) {
		tenants, err := s.store.SecretTenants(ctx)
		return len(tenants) == 0, err
	})
}
