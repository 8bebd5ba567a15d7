package httpapi

import (
	"crypto/rand"
	"os"

	"github.com/sallyport-dev/sallyport"
)

// spool opens a temporary file that has no name any more: it is gone with its last descriptor, after a crash too. An empty
// directory means the system's.
func spool(directory string) (*os.File, error) {
	if directory == "" {
		directory = os.TempDir()
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, spoolFault(err)
	}
	defer root.Close() //nolint:errcheck // Only names were used.
	name := "sallyport-upload-" + rand.Text()
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, spoolFault(err)
	}
	if err := root.Remove(name); err != nil {
		_ = file.Close()
		return nil, spoolFault(err)
	}
	return file, nil
}

func spoolFault(err error) error {
	return &sallyport.Error{
		Op: "httpapi.spool", Code: sallyport.CodeStoreUnavailable, Message: "the upload cannot be stored on this server", Err: err,
	}
}
