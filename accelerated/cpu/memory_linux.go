package cpu

import "golang.org/x/sys/unix"

// mapMemory returns size bytes of zeroed memory outside the Go heap, with huge
// pages where the system gives any.
func mapMemory(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	// A refusal costs speed only.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return b, nil
}

func unmapMemory(b []byte) error { return unix.Munmap(b) }
