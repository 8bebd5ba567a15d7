package container

import (
	_ "embed" // the programs of PID 1
)

// The engine's machine need not be ours, so both programs are here. They are built from helper/ by helper/build.sh.
var (
	//go:embed helper/helper_amd64
	helperAMD64 []byte
	//go:embed helper/helper_arm64
	helperARM64 []byte
)

// helperFor is the program for a machine as Go names it; nil when there is none.
func helperFor(arch string) []byte {
	switch arch {
	case "amd64":
		return helperAMD64
	case "arm64":
		return helperARM64
	}
	return nil
}
