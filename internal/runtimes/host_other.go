//go:build !unix

package runtimes

import "errors"

var errOther = errors.New("runtimes are unpacked on Unix only")

func lockFile(string) (func(), error) { return nil, errOther }

func trusted(string) error { return errOther }

func reachable(string) error { return errOther }
