package runtimes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// Resolve fills Root of the rows whose runtime is an image, and Fault of every row whose root cannot serve. Each root is looked at once. The
// sentences name no path of the host, because callers may read them.
func (s *Store) Resolve(ctx context.Context, rows []sallyport.Interpreter) []sallyport.Interpreter {
	faults := map[string]string{}
	out := make([]sallyport.Interpreter, len(rows))
	for i, row := range rows {
		if row.Image != "" {
			row.Root = s.Root(row.Digest)
		}
		if row.Root != "" {
			fault, known := faults[row.Root]
			if !known {
				fault = s.fault(ctx, row)
				faults[row.Root] = fault
			}
			if fault == "" {
				fault = programFault(row)
			}
			row.Fault = fault
		}
		out[i] = row
	}
	return out
}

func (s *Store) fault(ctx context.Context, row sallyport.Interpreter) string {
	if row.Image != "" {
		switch err := s.Verify(ctx, row.Digest, false); {
		case errors.Is(err, ErrNotUnpacked):
			return "its image is not unpacked on this machine; an operator runs: sallyport runtime pull " + row.Runtime
		case errors.Is(err, errChanged):
			return "its files are not what was unpacked; an operator runs: sallyport runtime verify " + row.Runtime
		case err != nil:
			return "its files cannot be read; an operator runs: sallyport runtime verify " + row.Runtime
		}
	} else if err := trusted(row.Root); errors.Is(err, fs.ErrNotExist) {
		return "its root folder is not there; an operator looks at runtimes in server.yaml"
	} else if err != nil {
		return "its root folder is none, or others than the server's user can change it; an operator runs: sallyport doctor"
	}
	if err := reachable(row.Root); err != nil {
		return "a folder above its root is closed to the users that scripts run as; an operator runs: sallyport doctor"
	}
	return ""
}

// programFault looks for the interpreter inside of the root.
func programFault(row sallyport.Interpreter) string {
	root, err := os.OpenRoot(row.Root)
	if err != nil {
		return "its root folder cannot be read; an operator runs: sallyport doctor"
	}
	defer func() { _ = root.Close() }()
	at, err := resolveIn(root, strings.TrimPrefix(row.Program, "/"))
	if err == nil {
		var info fs.FileInfo
		if info, err = root.Lstat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return ""
		}
	}
	return "it has no program " + row.Program + "; an operator corrects program in runtimes, or builds it anew"
}

// Reachable returns an error that names the folder above root, or root itself, that keeps runs out; it is for an operator.
func Reachable(root string) error {
	if err := trusted(root); err != nil {
		return err
	}
	return reachable(filepath.Clean(root))
}
