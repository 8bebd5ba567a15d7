// Package archtest holds the rules about the shape of this module, as tests: which package may import which, what the
// vocabulary and the executors may never link, that every package says what it is for, and that the documents name only
// what exists.
//
// It leaves rules about single lines to the linter (.golangci.yml). Its one invariant: every rule reads the files inside
// the test process, so that a cached "ok" is never older than the code it speaks of.
package archtest
