package metal

import "syscall"

// thread is the operating system's thread that runs this goroutine.
func thread() int { return syscall.Gettid() }
