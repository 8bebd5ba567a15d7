// Package examples carries the example skills inside the binary, so that the demo works from the binary alone.
//
// It owns nothing but the embedding; the skills themselves are in skills/ and are tested there. Its one invariant: what it
// carries is the tree of skills/, byte for byte.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:skills
var tree embed.FS

// Skills returns the folder of skills, each one a folder of its own.
func Skills() fs.FS {
	skills, err := fs.Sub(tree, "skills")
	if err != nil {
		// Only a malformed constant gets here.
		return tree
	}
	return skills
}
