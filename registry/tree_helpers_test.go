package registry_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"syscall"
)

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o600) }

func crcOf(s string) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(s)))
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}
