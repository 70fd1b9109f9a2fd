package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/ringcheck/accelerated/cpu"
	_ "pgregory.net/rapid" // so that -rapid.checks is known here
)

const peerWay = "RINGCHECK_TEST_PEER"

// TestMain is also the program that plays a peer, in the way that a variable of
// the environment says.
func TestMain(m *testing.M) {
	if way := os.Getenv(peerWay); way != "" {
		playPeer(way)
		return
	}
	os.Exit(m.Run())
}

func playPeer(way string) {
	switch way {
	case "stateful":
		fmt.Println(`{"peer": "hypothesis", "operations": 50, "seconds": 1, "per_second": 50}`)
		return
	case "silent":
		fmt.Fprintln(os.Stderr, "no such module")
		os.Exit(3)
	case "nameless":
		fmt.Println(`{}`)
	case "chatty":
		fmt.Println("Loading…")
	case "floods":
		fmt.Println(strings.Repeat("x", 2*maxAnswer))
	default:
		fmt.Println(`{"peer": "a peer"}`)
	}
	kind := ""
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var request struct {
			Setup *struct {
				Kind string
				Rows int
			}
			Run int
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			fmt.Println(err)
			return
		}
		switch {
		case request.Setup != nil && request.Setup.Rows == 0:
			fmt.Println(`{"error": "no rows"}`)
		case request.Setup != nil && way == "refuses":
			fmt.Printf("{\"error\": \"cannot %s\"}\n", request.Setup.Kind)
		case request.Setup != nil:
			kind = request.Setup.Kind
			fmt.Println(`{"ready": true}`)
		case way == "dies":
			return
		default: // a second a step
			fmt.Printf("{\"seconds\": %d, \"bytes\": %d}\n", request.Run, len(kind))
		}
	}
}

// playedPeer is the command of a peer that behaves in a way.
func playedPeer(t *testing.T, way string) []string {
	t.Helper()
	t.Setenv(peerWay, way)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self}
}

func TestMeasure(t *testing.T) {
	done := 0
	o := Options{
		Device: "cpu", Plain: true, Peer: playedPeer(t, "good"), Rounds: 3, Works: Table(true), Sweeps: Sweeps(true),
		Done: func() { done++ },
	}
	r, err := Measure(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	ours := []string{OnDevice, PlainGo}
	if r.Names[OnDevice] == "cpu (plain Go)" { // no assembly for this processor
		ours = ours[:1]
	} else if r.Names[PlainGo] != "cpu (plain Go)" {
		t.Errorf("names are %v", r.Names)
	}
	if r.Names[Peer] != "a peer" || len(r.Names) != 1+len(ours) || len(r.LeftOut) != 2-len(ours) {
		t.Errorf("names are %v, left out %q", r.Names, r.LeftOut)
	}
	var all []Result
	all = append(all, r.Table...)
	for _, g := range r.Growth {
		if len(g.Results) != len(g.Values) || len(g.Labels) != len(g.Values) {
			t.Errorf("%s: %d results for %d values, %d labels", g.Name, len(g.Results), len(g.Values), len(g.Labels))
		}
		all = append(all, g.Results...)
	}
	if len(r.Table) != len(o.Works) || len(r.Growth) != len(o.Sweeps) || done != len(all) {
		t.Errorf("%d works, %d sweeps, %d reported as done", len(r.Table), len(r.Growth), done)
	}
	for _, w := range all {
		name := fmt.Sprintf("%s of %+v", w.Work.Name, w.Work.Shape)
		want := append([]string{Peer}, ours...)
		if y := w.Work.Kind.yardstick(); y != "" {
			want = append(want, y)
		}
		if len(w.Times) != len(want) {
			t.Errorf("%s: times of %d contenders, want those of %v", name, len(w.Times), want)
		}
		for _, c := range want {
			if len(w.Times[c]) != 3 {
				t.Errorf("%s: %s has %d rounds", name, c, len(w.Times[c]))
			}
			for _, s := range w.Times[c] {
				if s <= 0 {
					t.Errorf("%s: a step of %s took %v", name, c, s)
				}
			}
		}
		if w.Times[Peer].Median() != 1 || w.PeerHeld != len(w.Work.Kind) {
			t.Errorf("%s: the peer took %v and held %d", name, w.Times[Peer], w.PeerHeld)
		}
		if w.Work.Kind != Attend && w.Written < float64(w.Least) {
			t.Errorf("%s: %v bytes written, which is less than the least, %d", name, w.Written, w.Least)
		}
		if w.Held > w.Limit || (w.Held == 0) != (w.Work.Kind == Filter) || w.Live != 0 && w.Live < w.Held {
			t.Errorf("%s: %d bytes held, limit %d, %d live", name, w.Held, w.Limit, w.Live)
		}
		if missed := w.Missed(); w.Work.Bars == (Bars{}) && len(missed) > 0 {
			t.Errorf("%s: without bars it missed %q", name, missed)
		}
	}
}

// TestTable holds the works to what they are said to be.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, w := range Table(false) {
		s := w.Shape
		if names[w.Name] || s.Rows != 8 || s.Heads != 8 || s.KeyDim != 128 || s.ValueDim != 128 || s.Window != 1024 {
			t.Errorf("%+v", w)
		}
		names[w.Name] = true
		if s.QueryHeads%s.Heads != 0 || subjects[w.Kind] == nil {
			t.Errorf("%+v", w)
		}
	}
	for _, s := range Sweeps(false) {
		if names[s.FullName()] || len(s.Works) != len(s.Labels) || s.Values != nil && len(s.Values) != len(s.Works) {
			t.Errorf("%+v", s)
		}
		names[s.FullName()] = true
	}
}

func TestMeasureWithoutPeer(t *testing.T) {
	r, err := Measure(context.Background(), Options{Device: "cpu", Rounds: 1, Works: Table(true)[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Names) != 1 || len(r.Table[0].Times) != 1 || len(r.Table[0].Faster(OnDevice)) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestMeasureFails(t *testing.T) {
	ctx := context.Background()
	if _, err := Measure(ctx, Options{Device: "abacus", Rounds: 1}); err == nil || !strings.Contains(err.Error(), "abacus") {
		t.Errorf("of a device that does not exist: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	r, err := Measure(cancelled, Options{Device: "cpu", Rounds: 1, Works: Table(true), Done: cancel})
	if !errors.Is(err, context.Canceled) || len(r.Table) != 1 {
		t.Errorf("cancelled after one work: %v, with %d results", err, len(r.Table))
	}
	for way, want := range map[string]string{
		"silent":   "it ended; it said:\nno such module",
		"nameless": "does not say who it is",
		"chatty":   "no answer",
		"floods":   "token too long",
		"refuses":  "cannot decode",
		"dies":     "it ended",
	} {
		t.Run(way, func(t *testing.T) {
			_, err := Measure(ctx, Options{Device: "cpu", Peer: playedPeer(t, way), Rounds: 1, Works: Table(true)[:1]})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
		})
	}
	if _, err := Measure(ctx, Options{Device: "cpu", Peer: []string{"./nowhere"}, Rounds: 1}); err == nil {
		t.Error("a peer that does not exist was started")
	}
}

// TestWritten counts by hand what steps write.
func TestWritten(t *testing.T) {
	dev := cpu.Open(cpu.Options{})
	defer dev.Close()
	s := Shape{Rows: 2, Heads: 2, QueryHeads: 2, KeyDim: 64, ValueDim: 64, Window: 32, Block: 16, Group: 64}
	four := s
	four.Bits = 4
	const column = 2 * (64 + 64) * 2 // heads, widths, bytes
	for _, w := range []struct {
		Work
		want float64
	}{
		{Work{Kind: Decode, Shape: s}, 2 * column},
		{Work{Kind: QuantizingDecode, Shape: four}, 2 * 2 * 2 * (32 + 2 + 2)}, // rows, heads, sides
		{Work{Kind: DecodePadded, Shape: s}, 2*column + 2*32},
		// One block of two is a plain write; the other moves W-1 columns first.
		{Work{Kind: Block, Shape: s}, 2 * column * (16 + 16 + 31) / 2.},
		{Work{Kind: BlockUnseen, Shape: s}, 2*column*(16+16+31)/2. + 2*16*(31+16)},
		{Work{Kind: Merge, Shape: s}, 2 * 32 * column},
		{Work{Kind: Extract, Shape: s}, 32 * column},
		{Work{Kind: Attend, Shape: s}, 0}, // its mask is remembered
	} {
		got, err := written(dev, w.Work)
		if err != nil || got != w.want {
			t.Errorf("%s: %v bytes a step, %v; want %v", w.Kind, got, err, w.want)
		}
	}
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d buffers are live", n)
	}
}

func TestCalibrate(t *testing.T) {
	for _, c := range []struct {
		step, slot  time.Duration
		cycle, want int
	}{
		{time.Microsecond, 0, 3, 3},
		{time.Millisecond, 100 * time.Millisecond, 1, 100},
		{time.Millisecond, 100 * time.Millisecond, 7, 98},
		{time.Second, 100 * time.Millisecond, 2, 2},
	} {
		contender := contender{cycle: c.cycle, run: func(n int) (time.Duration, error) { return time.Duration(n) * c.step, nil }}
		if err := contender.calibrate(c.slot); err != nil {
			t.Fatal(err)
		}
		if n := contender.n; n%c.cycle != 0 || n > c.want || n < c.want-c.cycle {
			t.Errorf("%v: %d steps, want %d", c, n, c.want)
		}
	}
}

func TestUseOfCPU(t *testing.T) {
	before, ok := useOfCPU("self")
	if runtime.GOOS != "linux" {
		if ok {
			t.Error("this system says how its time was used; use that")
		}
		return
	}
	for n := 0; n < 20; { // ticks of our own
		sum(make([]byte, 1<<20))
		after, _ := useOfCPU("self")
		n = after.own - before.own
	}
	after, _ := useOfCPU("self")
	if !ok || after.all-before.all < 10 || after.total < after.all || before.total > after.total {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, ok := useOfCPU("no such process"); ok {
		t.Error("a process that does not exist used time")
	}
}

func TestYardstick(t *testing.T) {
	const size = 1<<20 + 123
	y, err := newYardstick(CopyMemory, size)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if len(y.src) != size || len(y.dst) != size {
		t.Fatalf("%d and %d bytes", len(y.src), len(y.dst))
	}
	for i := range y.src {
		y.src[i] = byte(i * i >> 8)
	}
	for _, cores := range []int{1, 2, 3} {
		for _, piece := range []int{size, smallPiece} {
			clear(y.dst)
			y.pass(cores, piece)
			if !bytes.Equal(y.dst, y.src) {
				t.Errorf("on %d cores in pieces of %d it copies something else", cores, piece)
			}
		}
	}
	if d, err := y.run(2); err != nil || d <= 0 {
		t.Errorf("it takes %v, %v", d, err)
	}
	ones := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 8*10)
	if got := sum(ones); got != 8*10 {
		t.Errorf("the sum of %d words of 1 is %d", 8*10, got)
	}
}
