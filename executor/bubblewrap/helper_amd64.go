package bubblewrap

import _ "embed" // the program of PID 1

// helperProgram is built from helper/ by helper/build.sh.
//
//go:embed helper/helper_amd64
var helperProgram []byte
