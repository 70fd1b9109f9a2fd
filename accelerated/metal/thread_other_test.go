//go:build !linux

package metal

// thread is not known here; the stand-in's rule of threads is checked on Linux.
func thread() int { return 0 }
