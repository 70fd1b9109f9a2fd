package cpu

// best is plain Go.
func best() kernels { return plainGo }
