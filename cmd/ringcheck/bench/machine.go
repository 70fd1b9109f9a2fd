package bench

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/ringcheck/accelerated/cpu"
)

// Machine is where and under what load a run was made.
type Machine struct {
	CPU    string `json:"cpu,omitempty"` // as the system names it
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
	Before string `json:"load_before,omitempty"` // load averages, where the system has them
	After  string `json:"load_after,omitempty"`
}

// thisMachine describes it, and its load now.
func thisMachine() Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Before: load()}
	info, _ := os.ReadFile("/proc/cpuinfo") // linux only
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// load is the load averages of the last 1, 5 and 15 minutes.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // linux only
	if words := strings.Fields(string(text)); len(words) > 3 {
		return strings.Join(words[:3], " ")
	}
	return ""
}

// useOfCPU is how much processor time was used since the machine started, in
// ticks: by all, by the processes named, and in all that there was. ok is false
// where the system (any but linux) does not say.
func useOfCPU(processes ...string) (use struct{ all, own, total int }, ok bool) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		n, _ := strconv.Atoi(word) // of "cpu", nothing
		const idle, waiting, guests = 4, 5, 9
		if i < guests { // which count as their host already
			use.total += n
			if i != idle && i != waiting {
				use.all += n
			}
		}
	}
	for _, p := range processes {
		text, err := os.ReadFile("/proc/" + p + "/stat")
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		const user, system = 11, 12
		if err != nil || len(fields) <= system {
			return use, false
		}
		for _, i := range [2]int{user, system} {
			n, _ := strconv.Atoi(fields[i])
			use.own += n
		}
	}
	return use, use.total > 0
}

// yardstick is the machine's own speed at a number of bytes: the best of one
// core and all, and of large pieces and small. The runtime copies pieces of
// 1 MiB and more past the cache where the processor can, and smaller ones
// through it.
type yardstick struct {
	reads    bool
	dev      *cpu.Device
	src, dst []byte
}

// The contenders that are no caches.
const (
	CopyMemory = "copy"
	ReadMemory = "read"
)

const smallPiece = 256 << 10

func newYardstick(name string, bytes int) (*yardstick, error) {
	y := &yardstick{reads: name == ReadMemory, dev: cpu.Open(cpu.Options{})}
	for _, b := range []*[]byte{&y.src, &y.dst} {
		buffer, err := y.dev.Alloc(bytes) // memory of the kind that caches have
		if err != nil {
			return nil, errorsAfter(err, y.dev.Close)
		}
		*b = buffer.(*cpu.Buffer).Bytes()
		for i := range *b {
			(*b)[i] = byte(i)
		}
	}
	return y, nil
}

func (y *yardstick) Close() error { return y.dev.Close() }

// run does it n times in each way, and says how long the best of them took.
func (y *yardstick) run(n int) (time.Duration, error) {
	var best time.Duration
	for _, cores := range []int{1, runtime.GOMAXPROCS(0)} {
		for _, piece := range []int{len(y.src), smallPiece} {
			begin := time.Now()
			for range n {
				y.pass(cores, piece)
			}
			if d := time.Since(begin); best == 0 || d < best {
				best = d
			}
		}
	}
	return best, nil
}

// pass goes over all bytes once.
func (y *yardstick) pass(cores, piece int) {
	part := (len(y.src)/cores + 63) &^ 63
	var wait sync.WaitGroup
	for from := part; from < len(y.src); from += part {
		wait.Go(func() { y.over(from, min(from+part, len(y.src)), piece) })
	}
	y.over(0, min(part, len(y.src)), piece)
	wait.Wait()
}

func (y *yardstick) over(from, to, piece int) {
	if y.reads {
		sum(y.src[from:to])
		return
	}
	for ; from < to; from += piece {
		end := min(from+piece, to)
		copy(y.dst[from:end], y.src[from:end])
	}
}

// sum reads b; what it returns keeps the compiler from leaving it out.
//
//go:noinline
func sum(b []byte) (s uint64) {
	var s0, s1, s2, s3 uint64
	for ; len(b) >= 64; b = b[64:] {
		line := (*[64]byte)(b)
		s0 += binary.LittleEndian.Uint64(line[0:]) + binary.LittleEndian.Uint64(line[32:])
		s1 += binary.LittleEndian.Uint64(line[8:]) + binary.LittleEndian.Uint64(line[40:])
		s2 += binary.LittleEndian.Uint64(line[16:]) + binary.LittleEndian.Uint64(line[48:])
		s3 += binary.LittleEndian.Uint64(line[24:]) + binary.LittleEndian.Uint64(line[56:])
	}
	return s0 + s1 + s2 + s3
}
