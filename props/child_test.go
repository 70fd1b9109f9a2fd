package props

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/ringcheck/corpus"
)

// childEnv makes the test binary behave as a child of that name.
const childEnv = "RINGCHECK_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		childMain(name)
		return
	}
	if dir := os.Getenv(filingEnv); dir != "" {
		fileForEver(dir)
		return
	}
	os.Exit(m.Run())
}

// childMain is what the misbehaving children do. Those that get as far as
// hello answer it for the fake target.
func childMain(name string) {
	if name == "good" || name == "good-but-noisy" {
		if name == "good-but-noisy" {
			go flood(os.Stderr, "a word on standard error\n")
		}
		if err := Serve(context.Background(), fake{}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if name == "knows-no-batch" {
		Serve(context.Background(), batchless{ReferenceTarget()}, os.Stdin, os.Stdout)
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	switch name {
	case "exits-at-hello":
		fmt.Fprintln(os.Stderr, "no module named mlx")
		os.Exit(3)
	case "never-reads":
		time.Sleep(time.Hour)
	case "floods-at-once":
		flood(os.Stdout, "all work and no play\n")
	case "endless-line":
		flood(os.Stdout, strings.Repeat("x", 1<<16))
	case "stays-connected":
		stayConnected()
		return
	case "hello-of-nobody":
		fmt.Println(`{"protocol":1,"name":"nobody"}`)
		io.Copy(io.Discard, in)
		return
	}
	readLine(in)
	os.Stdout.Write(encodeHello(fake{}.Info()))
	for {
		line, err := readLine(in)
		if err != nil {
			return
		}
		r, err := decodeRequest(line)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if r.cmd == "bye" {
			switch name {
			case "bye-bye":
				fmt.Println("bye")
			case "ignores-bye":
				time.Sleep(time.Hour)
			case "stays-after-bye":
				fmt.Println("{}")
				time.Sleep(time.Hour)
			}
			fmt.Println("{}")
			return
		}
		misbehave(name, r)
	}
}

func misbehave(name string, r request) {
	steps, _ := fake{}.Run(context.Background(), r.c, r.dir)
	good := encodeSteps(r.seq, steps, r.layout)
	switch name {
	case "crashes":
		fmt.Fprintln(os.Stderr, "Segmentation fault\x1b[31m")
		os.Exit(7)
	case "hangs":
		time.Sleep(time.Hour)
	case "leaves-a-child", "leaves-an-orphan":
		leave(name == "leaves-an-orphan")
		os.Exit(1)
	case "garbage":
		fmt.Println("Traceback (most recent call last):")
	case "wrong-seq":
		os.Stdout.Write(encodeSteps(r.seq+1, steps, r.layout))
	case "half-an-answer":
		os.Stdout.Write(good[:len(good)/2])
		os.Exit(0)
	case "no-answer":
		os.Exit(0)
	case "too-few":
		os.Stdout.Write(encodeSteps(r.seq, steps[:1], r.layout))
	case "claims-what-it-has-not":
		os.Stdout.Write(encodeSteps(r.seq, []corpus.Step{{Unsupported: string(r.c.Ops[0].Verb)}}, r.layout))
	case "says-fault":
		os.Stdout.Write(encodeFault(r.seq, "out of memory"))
	case "answers-twice":
		os.Stdout.Write(good)
		os.Stdout.Write(good)
	case "crashes-on-the-second":
		if r.c.Name == fakeCases[1].Name {
			os.Exit(7)
		}
		os.Stdout.Write(good)
	case "crashes-for-good":
		if r.seq > 1 {
			fmt.Fprintln(os.Stderr, "Traceback (most recent call last):\n  File \"x\"\nMemoryError: the GPU is gone")
			os.Exit(1)
		}
		os.Stdout.Write(good)
	case "crashes-every-other-time":
		if r.seq%2 == 1 {
			os.Exit(1)
		}
		os.Stdout.Write(good)
	case "stays-after-bye", "ignores-bye":
		os.Stdout.Write(good)
	default:
		panic("no such child: " + name)
	}
}

// dialEnv is where a descendant of a child reports that it lives.
const dialEnv = "RINGCHECK_TEST_DIAL"

// leave starts a process that holds the child's pipes open, in the child's
// process group or in one of its own, and returns once that has reported.
func leave(orphan bool) {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	x := exec.Command(exe)
	x.Env = append(os.Environ(), childEnv+"=stays-connected")
	x.Stderr = os.Stderr
	ready, err := x.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if orphan {
		x.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		x.ExtraFiles = []*os.File{os.Stdout}
	}
	if err := x.Start(); err != nil {
		panic(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		panic(err)
	}
}

// stayConnected lives until the test hangs up.
func stayConnected() {
	conn, err := net.Dial("tcp", os.Getenv(dialEnv))
	if err != nil {
		panic(err)
	}
	fmt.Print("!")
	io.Copy(io.Discard, conn)
}

func flood(w io.Writer, text string) {
	text = strings.Repeat(text, 1+(1<<16)/len(text))
	for {
		if _, err := io.WriteString(w, text); err != nil {
			os.Exit(0)
		}
	}
}

// startTestChild starts this test binary as the child of that name.
func startTestChild(t *testing.T, name string, o ChildOptions) (*Child, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childEnv, name)
	return StartChild(context.Background(), []string{exe}, o)
}

// noGoroutinesLeft fails the test if the child's goroutines outlive it.
func noGoroutinesLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for n := 0; runtime.NumGoroutine() > before; n++ {
			if n == 500 {
				buf := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestChildLoopback(t *testing.T) {
	for _, name := range []string{"good", "good-but-noisy"} {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			child, err := startTestChild(t, name, ChildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(child.Info()), fmt.Sprint(fake{}.Info()); got != want {
				t.Fatalf("hello says %s, want %s", got, want)
			}
			for _, c := range fakeCases {
				want, _ := fake{}.Run(context.Background(), c, "")
				got, err := child.Run(context.Background(), c, "")
				if err != nil {
					t.Fatal(err)
				}
				if d := CompareRuns(c, want, got, Layout); d != nil {
					t.Fatal(d)
				}
			}
			if err := child.Close(); err != nil {
				t.Fatal(err)
			}
			if err := child.Close(); err != nil {
				t.Fatalf("the second Close: %v", err)
			}
			if _, err := child.Run(context.Background(), fakeCases[0], ""); err == nil {
				t.Fatal("a closed child ran a case")
			}
		})
	}
}

// TestChildFaults runs a case on children that misbehave: each is a Fault that
// says what happened, and the next Run has a fresh process.
func TestChildFaults(t *testing.T) {
	tests := map[string]struct{ reason, stderr string }{
		"crashes":                {reason: "ended before it answered (exit status 7)", stderr: "Segmentation fault\uFFFD[31m"},
		"hangs":                  {reason: "did not answer within 300ms"},
		"garbage":                {reason: `answered a run wrongly: not JSON: invalid character 'T' looking for beginning of value; it wrote "Traceback (most recent call last):"`},
		"wrong-seq":              {reason: "answered seq 2, want 1"},
		"half-an-answer":         {reason: "ended before it answered (exit status 0)"},
		"no-answer":              {reason: "ended before it answered (exit status 0)"},
		"too-few":                {reason: "1 observation for"},
		"claims-what-it-has-not": {reason: "#0 new: says unsupported, though hello claims"},
		"says-fault":             {reason: `could not run the case: "out of memory"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			child, err := startTestChild(t, name, ChildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer child.Close()
			if name == "hangs" {
				child.o.Timeout = 300 * time.Millisecond
			}
			for range 2 { // the second time it is started again, where it was killed
				_, err = child.Run(context.Background(), fakeCases[0], "")
				var fault *Fault
				if !errors.As(err, &fault) {
					t.Fatalf("error is %v, want a Fault", err)
				}
				reason := test.reason
				if name == "wrong-seq" || name == "says-fault" {
					reason = strings.TrimSuffix(reason, "2, want 1")
				}
				if !strings.Contains(fault.Reason, reason) {
					t.Errorf("reason is %q, want %q in it", fault.Reason, reason)
				}
				if !strings.Contains(fault.Stderr, test.stderr) {
					t.Errorf("standard error is %q, want %q in it", fault.Stderr, test.stderr)
				}
			}
		})
	}
}

func TestChildFaultsAtHello(t *testing.T) {
	short := ChildOptions{Timeout: 300 * time.Millisecond}
	tests := map[string]struct {
		o              ChildOptions
		reason, stderr string
	}{
		"exits-at-hello":  {reason: "ended before it answered (exit status 3)", stderr: "no module named mlx"},
		"never-reads":     {o: short, reason: "did not answer within 300ms"},
		"floods-at-once":  {reason: `answered hello wrongly: not JSON: invalid character 'a' looking for beginning of value; it wrote "all work and no play"`},
		"endless-line":    {reason: "sent a line of more than 67108864 bytes"},
		"hello-of-nobody": {reason: `answered hello wrongly: field "version" is missing`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			_, err := startTestChild(t, name, test.o)
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v, want a Fault", err)
			}
			if !strings.Contains(fault.Reason, test.reason) || !strings.Contains(fault.Stderr, test.stderr) {
				t.Errorf("fault is %+v, want reason %q and standard error %q", fault, test.reason, test.stderr)
			}
		})
	}
}

func TestChildRecovers(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "crashes-every-other-time", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	for n := range 4 {
		_, err := child.Run(context.Background(), fakeCases[0], "")
		if failed := err != nil; failed != (n%2 == 0) {
			t.Fatalf("run %d: %v", n, err)
		}
	}
}

func TestChildChangesItsHello(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "crashes", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	child.info.Version = "another"
	for _, reason := range []string{"exit status 7", "introduced itself differently", "introduced itself differently"} {
		if _, err := child.Run(context.Background(), fakeCases[0], ""); err == nil || !strings.Contains(err.Error(), reason) {
			t.Fatalf("error is %v, want %q", err, reason)
		}
	}
}

// TestChildGivesUp: a child that does nothing but fail is given up, whether it
// ever did anything else or not, and is not started again.
func TestChildGivesUp(t *testing.T) {
	for name, good := range map[string]int{"crashes": 0, "garbage": 0, "says-fault": 0, "crashes-for-good": 1} {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			child, err := startTestChild(t, name, ChildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer child.Close()
			for i := range good + mostFaults + 2 {
				_, err := child.Run(context.Background(), fakeCases[0], "")
				var fault *Fault
				var gaveUp *GaveUp
				switch {
				case i < good:
					if err != nil {
						t.Fatalf("run %d: %v", i, err)
					}
				case i < good+mostFaults-1:
					if !errors.As(err, &fault) || errors.As(err, &gaveUp) {
						t.Fatalf("run %d: %v, want a Fault", i, err)
					}
				default:
					if !errors.As(err, &gaveUp) || errors.As(err, &fault) || gaveUp.Faults != mostFaults {
						t.Fatalf("run %d: %v, want it given up", i, err)
					}
					if text := gaveUp.Error(); !strings.Contains(text, "after 10 failed runs in a row (a case may take several, and the last are not counted): the target failed") {
						t.Errorf("it says %q", text)
					}
				}
			}
			if most := uint64(good + mostFaults + len(simplest(child.info))); child.seq > most {
				t.Errorf("%d runs, want at most %d", child.seq, most)
			}
		})
	}
}

// TestChildHangs: one that only hangs is given up sooner, since it costs the
// whole time limit each time.
func TestChildHangs(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "hangs", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	child.o.Timeout = 300 * time.Millisecond
	for i := range mostSlow {
		_, err := child.Run(context.Background(), fakeCases[0], "")
		var gaveUp *GaveUp
		if got, want := errors.As(err, &gaveUp), i == mostSlow-1; got != want || got && gaveUp.Faults != mostSlow {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

func TestHelloTime(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Minute: 10 * time.Second, 5 * time.Second: 5 * time.Second, 10 * time.Minute: 100 * time.Second,
	} {
		if got := (ChildOptions{Timeout: timeout}).hello(); got != want {
			t.Errorf("of a time limit of %v hello gets %v, want %v", timeout, got, want)
		}
	}
}

// TestChildCrashesOnOne: a child that crashes on one case however often, as
// where that is made smaller, is not given up while it answers another.
func TestChildCrashesOnOne(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "crashes-on-the-second", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if _, err := child.Run(context.Background(), fakeCases[0], ""); err != nil {
		t.Fatal(err)
	}
	for i := range 2*mostFaults + 1 {
		var fault *Fault
		if _, err := child.Run(context.Background(), fakeCases[1], ""); !errors.As(err, &fault) {
			t.Fatalf("run %d: %v, want a Fault", i, err)
		}
	}
	if _, err := child.Run(context.Background(), fakeCases[0], ""); err != nil {
		t.Error(err)
	}
}

// batchless is a target that ends the process at each batch.
type batchless struct{ Target }

func (b batchless) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	for _, op := range c.Ops {
		if strings.HasPrefix(string(op.Kind), "batch_") {
			os.Exit(7)
		}
	}
	return b.Target.Run(ctx, c, dir)
}

// TestChildOfSomeKinds: a child that answers cases of some kinds is not given up
// before it was asked for one.
func TestChildOfSomeKinds(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "knows-no-batch", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	for i := range 2*mostFaults + 1 {
		var fault *Fault
		if _, err := child.Run(t.Context(), fakeCases[0], ""); !errors.As(err, &fault) {
			t.Fatalf("run %d: %v, want a Fault", i, err)
		}
	}
	if child.good == nil || child.faults != 1 {
		t.Errorf("%d faults are counted after an answer, want 1", child.faults)
	}
}

// TestSimplest: there is something simple to ask of each kind that the corpus
// has a case of by itself.
func TestSimplest(t *testing.T) {
	info := ReferenceTarget().Info()
	var kinds []corpus.Kind
	for _, c := range simplest(info) {
		kinds = append(kinds, c.Ops[0].Kind)
		if info.Lacks(c) != "" || len(c.Ops) > 6 {
			t.Errorf("%s: %d operations, and it lacks %q", c.Name, len(c.Ops), info.Lacks(c))
		}
	}
	for _, kind := range []corpus.Kind{corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.BatchRotatingQuantized, corpus.KV, corpus.BatchKV, corpus.Arrays} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("nothing for %s in %v", kind, kinds)
		}
	}
	info.Kinds, info.Ops = []corpus.Kind{corpus.Rotating}, []corpus.Verb{corpus.New, corpus.Update}
	if list := simplest(info); len(list) != 1 || list[0].Ops[0].Kind != corpus.Rotating {
		t.Errorf("%d cases for one kind", len(list))
	}
}

// TestReduceFaults: a crash is made smaller, within its bound; a hang is not,
// and a child that is given up ends a reduction.
func TestReduceFaults(t *testing.T) {
	target := func(fault Fault) metered {
		runs := 0
		return metered{Target: faulty{fault}, runs: &runs}
	}
	c := fakeCases[0]
	for _, test := range []struct {
		name       string
		fault      Fault
		ops, least int
		most       int
	}{
		{"crash", Fault{Reason: "crashed"}, 2, 3, reduceFaults + 1},
		{"hang", Fault{Reason: "hung", Slow: true}, len(c.Ops), 1, 1},
	} {
		m := target(test.fault)
		list, err := Named([]string{"reference"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := Check(t.Context(), m, c, list)
		if f == nil || err != nil || f.Fault == nil {
			t.Fatalf("%s: %v, %v", test.name, f, err)
		}
		small, err := Reduce(t.Context(), m, f)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(small.Case.Ops); n > test.ops || *m.runs < test.least || *m.runs > test.most {
			t.Errorf("%s: %d operations are left after %d runs, want %d", test.name, n, *m.runs, test.ops)
		}
	}
	m := target(Fault{Reason: "crashed"})
	m.each = func() {
		if *m.runs == 4 {
			panic(&GaveUp{Last: errors.New("enough")})
		}
	}
	f, err := Check(t.Context(), m, c, Properties())
	if f == nil || err != nil {
		t.Fatal(f, err)
	}
	if _, err := Reduce(t.Context(), givesUp{m}, f); err != nil || *m.runs != 4 {
		t.Errorf("%d runs of a target that gives up at the fourth: %v", *m.runs, err)
	}
}

// givesUp is a target that returns what the other one panics with.
type givesUp struct{ metered }

func (g givesUp) Run(ctx context.Context, c corpus.Case, dir string) (steps []corpus.Step, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = e.(*GaveUp)
		}
	}()
	return g.metered.Run(ctx, c, dir)
}

// faulty fails at each trim.
type faulty struct{ fault Fault }

func (f faulty) Info() Info { return fake{}.Info() }

func (f faulty) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	for i, op := range c.Ops {
		if op.Verb == corpus.Trim {
			c.Ops = c.Ops[:i]
			steps, _ := ReferenceTarget().Run(ctx, c, dir)
			return steps, &f.fault
		}
	}
	return ReferenceTarget().Run(ctx, c, dir)
}

func TestFaultText(t *testing.T) {
	for want, fault := range map[string]*Fault{
		"the target failed: hung":                                 {Reason: "hung"},
		"the target failed: hung; its standard error ends: …help": {Reason: "hung", Stderr: "…help"},
		"the target failed: x; its standard error ends: ValueError: no\nTraceback:\n  line\nValueError: no": {
			Reason: "x", Stderr: "Traceback:\n  line\nValueError: no"},
	} {
		if got := fault.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestClip: of a text that is too long the end stays, which says why.
func TestClip(t *testing.T) {
	long := "Traceback" + strings.Repeat(" and so on", 1000) + ": the reason"
	got := clip(long)
	if len(got) > 900 || !strings.HasPrefix(got, "Traceback and") || !strings.HasSuffix(got, "so on: the reason") {
		t.Errorf("got %q", got)
	}
	if got := clip(strings.Repeat("€", 700)); !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

func TestTail(t *testing.T) {
	long := &tail{keep: 4}
	for _, text := range []string{"", "ab", "cd", "ef", "gh", "ij\n"} {
		long.Write([]byte(text))
	}
	for want, tail := range map[string]*tail{"…hij": long, "ab\tc\uFFFD": {keep: 8, buf: []byte("ab\tc\x00\n\n")}} {
		if got := tail.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(long.buf) > 8 {
		t.Errorf("%d bytes are kept, want at most twice 4", len(long.buf))
	}
}

func TestChildAnswersTwice(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "answers-twice", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if _, err := child.Run(context.Background(), fakeCases[0], ""); err != nil {
		t.Fatal(err)
	}
	if _, err := child.Run(context.Background(), fakeCases[0], ""); err == nil || !strings.Contains(err.Error(), "answered seq 1, want 2") {
		t.Fatalf("error is %v, want one about the stale answer", err)
	}
}

func TestChildIgnoresBye(t *testing.T) {
	for name, reason := range map[string]string{
		"bye-bye":         "answered bye wrongly",
		"ignores-bye":     "did not answer within 100ms",
		"stays-after-bye": "did not exit after bye",
	} {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			child, err := startTestChild(t, name, ChildOptions{Grace: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			p := child.p
			if err := child.Close(); err == nil || !strings.Contains(err.Error(), reason) {
				t.Fatalf("Close says %v, want %q", err, reason)
			}
			if p.cmd.ProcessState == nil {
				t.Fatal("the child is still there")
			}
		})
	}
}

// TestChildDescendants: what the child started is killed with it; if it left
// the child's process group it is not, but does not keep Run from returning
// either, whatever pipes it holds.
func TestChildDescendants(t *testing.T) {
	for name, killed := range map[string]bool{"leaves-a-child": true, "leaves-an-orphan": false} {
		t.Run(name, func(t *testing.T) {
			noGoroutinesLeft(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			t.Setenv(dialEnv, listener.Addr().String())
			child, err := startTestChild(t, name, ChildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer child.Close()
			if !killed { // its pipes stay open, so that only time tells
				child.o.Timeout = 300 * time.Millisecond
			}
			_, err = child.Run(context.Background(), fakeCases[0], "")
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v, want a Fault", err)
			}
			descendant, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer descendant.Close() // which ends it
			if killed {
				if _, err := descendant.Read(make([]byte, 1)); err == nil {
					t.Fatal("a descendant said something")
				}
			}
		})
	}
}

func TestChildCancelled(t *testing.T) {
	noGoroutinesLeft(t)
	child, err := startTestChild(t, "hangs", ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := child.Run(ctx, fakeCases[0], ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want that of the context", err)
	}
}

func TestStartChildErrors(t *testing.T) {
	for _, cmd := range [][]string{nil, {"./no-such-program"}, {t.TempDir()}} {
		if _, err := StartChild(context.Background(), cmd, ChildOptions{}); err == nil {
			t.Errorf("%q started", cmd)
		}
	}
}
