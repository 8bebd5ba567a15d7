package shebang_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/shebang"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"#!/bin/bash\n":                         {"bash", "bash"},
		"#!/usr/bin/python3.11 -u\n":            {"python3.11", "python"},
		"#! /usr/bin/env python3\r\n":           {"python3", "python"},
		"#!/usr/bin/env -S A=1 node --x\n":      {"node", "node"},
		"\ufeff#!/bin/sh":                       {"sh", "sh"},
		"#!/usr/bin/env":                        nil,
		"#!/usr/bin/env -S A=1":                 nil,
		"#!":                                    nil,
		"":                                      nil,
		"#![allow(x)]\n":                        nil,
		"#!python3\n":                           nil,
		"\n#!/bin/sh\n":                         nil,
		"echo\n":                                nil,
		"#!" + strings.Repeat(" ", 300) + "/sh": nil,
	} {
		if got := shebang.Names([]byte(line)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
