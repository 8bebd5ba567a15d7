package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/sallyport-dev/sallyport"
)

// Blobs belong to no tenant: one content is stored once. They are reached through a tenant's component or artifact only.

const insertBlob = `INSERT INTO blobs (sha256, size, content) VALUES (?1, ?2, ?3) ON CONFLICT (sha256) DO NOTHING`

// addBlob stores content under its sha256, which the caller computed or verified.
func addBlob(ctx context.Context, tx *session, sum string, content []byte) error {
	if content == nil {
		content = []byte{} // nil would be NULL
	}
	_, err := tx.exec(ctx, insertBlob, sum, len(content), content)
	return err
}

// verify reports content that is not what its row says. A damaged byte must never reach a sandbox or a reader.
func verify(op string, content []byte, size int64, sum string) error {
	if int64(len(content)) == size && sumOf(content) == sum {
		return nil
	}
	return &sallyport.Error{
		Op: op, Code: sallyport.CodeStoreUnavailable,
		Message: "stored content is damaged: it does not match its sha256; restore the database from a backup",
		Err:     errors.New("blob " + sum),
	}
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
