package main

import (
	"os"
	"runtime/debug"
)

const (
	rarely    = 800     // GOGC
	memoryCap = 2 << 30 // bytes; beyond, the collector works as hard as it must
)

// collectRarely lets the garbage of judging cases grow to nine times what lives
// before it is collected. Nearly all of it is short-lived and the rest is small,
// so that by default the collector runs all the time and takes what a second
// core would bring: with this, two cores do 1.9 times the work of one. Whoever
// sets GOGC or GOMEMLIMIT has decided otherwise.
func collectRarely() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(rarely)
	debug.SetMemoryLimit(memoryCap)
}
