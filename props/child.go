package props

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/ringcheck/corpus"
)

// ChildOptions bound what a child may take; the zero value means the defaults.
type ChildOptions struct {
	Timeout time.Duration // for each run; default 60 s
	Grace   time.Duration // between bye and the kill; default 2 s
	Stderr  int           // how many last bytes of standard error a Fault carries; default 8 KiB
}

// Fault is the failure of a target to run a case: a child crashed, hung, or
// broke the protocol. It says nothing about the caches that the target has.
type Fault struct {
	Reason string
	Stderr string // the end of what it wrote to standard error
	Slow   bool   // it did not answer in time, or without end: to try again takes as long
}

// Error says in its first line what happened and the last line of standard
// error, which is where most programs say why; all that is kept of it follows.
func (f *Fault) Error() string {
	text := "the target failed: " + f.Reason
	if f.Stderr == "" {
		return text
	}
	last := f.Stderr[strings.LastIndexByte(f.Stderr, '\n')+1:]
	text += "; its standard error ends: " + strings.TrimSpace(last)
	if last != f.Stderr {
		text += "\n" + f.Stderr
	}
	return text
}

// hello is how long a child may take to introduce itself. One that does not
// answer is found out sooner there; where more time is given for a run, one may
// be slow to start, too.
func (o ChildOptions) hello() time.Duration {
	return min(o.Timeout, max(10*time.Second, o.Timeout/6))
}

// mostFaults is how many runs in a row may end in a fault before a child is
// asked for what it could once do, or for something simple, and mostSlow how many of those that take long.
const (
	mostFaults = 10
	mostSlow   = 3
)

// GaveUp ends the use of a child that does nothing but fail: so many runs in a
// row have ended in a fault, and a case that it has answered before did so as
// well, or, if there is none, a simple case of each kind. It is no [Fault]: nothing more is learned from
// running further cases.
type GaveUp struct {
	Faults int
	Last   error // what went wrong the last time
}

// Error counts runs, which are not cases: one that is made smaller takes many, and
// those under way when the child is given up come to nothing.
func (e *GaveUp) Error() string {
	return fmt.Sprintf("gave up after %d failed runs in a row (a case may take several, and the last are not counted): %v", e.Faults, e.Last)
}

// Child is a [Target] in a process of its own that speaks protocol 1 over
// standard input and output. After a [Fault] the process is killed with its
// process group, and the next Run starts another, until the child has [GaveUp].
// Runs are serialized: for parallel work start several children.
type Child struct {
	cmd  []string
	o    ChildOptions
	info Info

	mu     sync.Mutex
	p      *process // nil between a fault and the next Run
	seq    uint64
	closed bool
	faults int          // in a row
	slow   int          // in a row, those that took long
	good   *corpus.Case // the last one that was answered; nil: none
	gaveUp *GaveUp
}

// StartChild starts cmd (a program and its arguments; no shell is involved)
// and exchanges hello. The error is a [*Fault] if the process came up but did
// not introduce itself properly. ctx bounds the start, not the child's life:
// the caller must Close the child.
func StartChild(ctx context.Context, cmd []string, o ChildOptions) (*Child, error) {
	if len(cmd) == 0 {
		return nil, errors.New("start a child: no command given")
	}
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 2 * time.Second
	}
	if o.Stderr <= 0 {
		o.Stderr = 8 << 10
	}
	c := &Child{cmd: cmd, o: o}
	var err error
	c.p, c.info, err = c.start(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Info returns what the child claimed in its hello.
func (c *Child) Info() Info { return c.info }

// Run sends one case and decodes the answer; see [Target]. The error is a
// [*GaveUp] where the child answers nothing any more.
func (c *Child) Run(ctx context.Context, k corpus.Case, dir string) ([]corpus.Step, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, errors.New("run a case: the child is closed; start another")
	case c.gaveUp != nil:
		return nil, c.gaveUp
	}
	steps, err := c.run(ctx, k, dir, c.o.Timeout)
	switch {
	case err == nil:
		c.faults, c.slow, c.good = 0, 0, &k
		return steps, nil
	case ctx.Err() != nil:
		return nil, err
	}
	c.faults++
	var f *Fault
	if errors.As(err, &f) && f.Slow {
		c.slow++
	} else {
		c.slow = 0
	}
	often := c.faults%mostFaults == 0 || c.slow > 0 && c.slow%mostSlow == 0
	switch {
	case !often:
	case c.answers(ctx):
		c.faults, c.slow = 0, 0
	case ctx.Err() == nil:
		c.gaveUp = &GaveUp{c.faults, err}
		return nil, c.gaveUp
	}
	return nil, err
}

// answers reports whether the child still answers the case that it has answered
// last or, where there is none, a simple one of some kind. A reduction of a case
// that crashes it is many faults in a row, too.
func (c *Child) answers(ctx context.Context) bool {
	tries, limit := simplest(c.info), c.o.hello()
	if c.good != nil {
		tries, limit = []corpus.Case{*c.good}, c.o.Timeout
	}
	for _, k := range tries {
		dir, done, err := Scratch(k)
		if err != nil {
			return true // which says nothing of the child
		}
		_, err = c.run(ctx, k, dir, limit)
		done()
		if err == nil {
			c.good = &k
			return true
		}
	}
	return false
}

// simplest are the shortest cases of the corpus that write something, one for each
// kind of cache that is claimed, as far as there is one that needs no more.
func simplest(info Info) []corpus.Case {
	least := map[corpus.Kind]corpus.Case{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			continue
		}
		writes := slices.ContainsFunc(f.Case.Ops, func(op corpus.Op) bool {
			return (op.Verb == corpus.Update || op.Verb == corpus.Write) && (op.Want == nil || op.Want.Error == "")
		})
		if !writes || info.Lacks(f.Case) != "" {
			continue
		}
		kind := f.Case.Ops[0].Kind
		if known, ok := least[kind]; !ok || len(f.Case.Ops) < len(known.Ops) {
			least[kind] = f.Case
		}
	}
	var list []corpus.Case
	for _, kind := range info.Kinds {
		if k, ok := least[kind]; ok {
			list = append(list, k)
		}
	}
	return list
}

// run does one run within a limit, and starts a process for it where there is
// none.
func (c *Child) run(ctx context.Context, k corpus.Case, dir string, limit time.Duration) ([]corpus.Step, error) {
	if c.p == nil {
		p, info, err := c.start(ctx)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(info, c.info) {
			return nil, p.fault("introduced itself differently after a restart; its hello must always be the same")
		}
		c.p = p
	}
	c.seq++
	request, err := encodeRun(c.seq, k, c.info.Level == Layout, dir)
	if err != nil {
		return nil, err
	}
	line, err := c.p.exchange(ctx, request, limit)
	if err != nil {
		c.p = nil
		return nil, err
	}
	steps, refused, err := decodeRun(line, c.seq, k, c.info)
	if err != nil {
		p := c.p
		c.p = nil
		return nil, p.wrongly(err, line)
	}
	if refused != "" { // the child is well, but could not do this run
		return nil, &Fault{Reason: "could not run the case: " + refused, Stderr: c.p.stderr.String()}
	}
	return steps, nil
}

// Close says bye and waits for the child to exit; one that does not within the
// grace period is killed, and Close returns a [*Fault]. Closing again is
// harmless.
func (c *Child) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	p := c.p
	c.p = nil
	if p == nil {
		return nil
	}
	line, err := p.exchange(context.Background(), []byte(byeRequest), c.o.Grace)
	if err != nil {
		return err
	}
	if err := decodeBye(line); err != nil {
		return p.fault(err.Error())
	}
	p.in.Close()
	stop := p.closeAfter(context.Background(), c.o.Grace)
	_, err = io.Copy(io.Discard, p.out)
	stop()
	if err != nil {
		return p.fault("did not exit after bye")
	}
	p.end()
	return nil
}

// start makes a process and exchanges hello with it.
func (c *Child) start(ctx context.Context) (*process, Info, error) {
	p, err := startProcess(c.cmd, c.o.Stderr)
	if err != nil {
		return nil, Info{}, err
	}
	line, err := p.exchange(ctx, []byte(helloRequest), c.o.hello())
	if err != nil {
		return nil, Info{}, err
	}
	info, err := decodeHello(line)
	if err != nil {
		return nil, Info{}, p.wrongly(err, line)
	}
	return p, info, nil
}

// process is one running child. Its pipes are ours, so that closing them ends
// every goroutine, whatever a grandchild that escaped holds open.
type process struct {
	cmd     *exec.Cmd
	in      *os.File
	outFile *os.File
	out     *bufio.Reader
	errFile *os.File
	stderr  *tail
	drained chan struct{} // closed when standard error has ended
}

func startProcess(cmd []string, keep int) (*process, error) {
	x := exec.Command(cmd[0], cmd[1:]...)
	// A group of its own, so that what the child started ends with it.
	x.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd: x, stderr: &tail{keep: keep}, drained: make(chan struct{})}
	var theirs, ours []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(theirs, ours...))
			return nil, fmt.Errorf("start %s: %w", cmd[0], err)
		}
		if len(ours) == 0 { // standard input: they read, we write
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	x.Stdin, x.Stdout, x.Stderr = theirs[0], theirs[1], theirs[2]
	p.in, p.outFile, p.errFile = ours[0], ours[1], ours[2]
	p.out = bufio.NewReaderSize(p.outFile, 64<<10)
	err := x.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", cmd[0], err)
	}
	go func() {
		defer close(p.drained)
		io.Copy(p.stderr, p.errFile)
	}()
	return p, nil
}

// exchange sends one line and reads one. The writer is a goroutine, because a
// child that floods its output before it reads would otherwise block both
// sides. On an error the process has ended.
func (p *process) exchange(ctx context.Context, request []byte, limit time.Duration) ([]byte, error) {
	written := make(chan error, 1)
	stop := p.closeAfter(ctx, limit)
	go func() {
		_, err := p.in.Write(request)
		written <- err
	}()
	line, err := readLine(p.out)
	timedOut := stop()
	if err == nil {
		// A child that answers has no business leaving the request unread, and
		// a write that still blocks must not outlive this call.
		p.in.SetWriteDeadline(time.Now().Add(time.Second))
		werr := <-written
		p.in.SetWriteDeadline(time.Time{})
		if werr != nil && !timedOut {
			return nil, p.fault("answered without reading the request")
		}
	} else {
		p.in.Close()
		<-written
	}
	switch {
	case ctx.Err() != nil:
		p.end()
		return nil, ctx.Err()
	case timedOut:
		return nil, p.slowFault(fmt.Sprintf("did not answer within %v (is each answer one line, and flushed?)", limit))
	case errors.Is(err, errLineTooLong):
		return nil, p.slowFault("sent " + err.Error())
	case err != nil:
		return nil, p.faultExit()
	}
	return line, nil
}

// closeAfter closes our end of the child's output when ctx ends or limit has
// passed, which ends a pending read. stop ends the watch and says whether it
// had fired.
func (p *process) closeAfter(ctx context.Context, limit time.Duration) (stop func() (fired bool)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	unwatch := context.AfterFunc(ctx, func() { p.outFile.Close() })
	return func() bool {
		fired := !unwatch()
		cancel()
		return fired
	}
}

// fault ends the process and says why.
func (p *process) fault(reason string) error {
	p.end()
	return &Fault{Reason: clip(reason), Stderr: p.stderr.String()}
}

// wrongly is the fault of a line that is not the answer that it should be.
func (p *process) wrongly(err error, line []byte) error {
	reason := err.Error()
	if !json.Valid(line) && len(bytes.TrimSpace(line)) > 0 { // who prints for people where an answer should be
		reason += "; it wrote " + quoted(string(line))
	}
	return p.fault(reason)
}

// slowFault is a fault that takes long to come about.
func (p *process) slowFault(reason string) error {
	p.end()
	return &Fault{Reason: reason, Stderr: p.stderr.String(), Slow: true}
}

// faultExit ends a process that closed its output, and says how it exited.
func (p *process) faultExit() error {
	state := p.end()
	return &Fault{Reason: fmt.Sprintf("ended before it answered (%v)", state), Stderr: p.stderr.String()}
}

// end kills what is left of the process group, then reaps the process: in this
// order, because until it is reaped its id cannot be another's. It returns
// once all goroutines of p are done.
func (p *process) end() *os.ProcessState {
	p.in.Close()
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.cmd.Process.Kill() // in case it left its group
	p.cmd.Wait()
	// The last words arrive at once; only a process outside the group could
	// still hold the pipe.
	p.errFile.SetReadDeadline(time.Now().Add(time.Second))
	<-p.drained
	p.errFile.Close()
	p.outFile.Close()
	return p.cmd.ProcessState
}

// tail keeps the last bytes written to it.
type tail struct {
	keep int
	mu   sync.Mutex
	buf  []byte
	cut  bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*t.keep {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.keep:]...)
		t.cut = true
	}
	return len(b), nil
}

// String returns the kept bytes as printable UTF-8, "…" first if some are lost.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, cut := t.buf, t.cut
	if len(b) > t.keep {
		b, cut = b[len(b)-t.keep:], true
	}
	b = bytes.Map(func(r rune) rune { // no control sequence may reach a terminal
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, bytes.TrimRight(b, "\n"))
	if cut {
		return "…" + string(b)
	}
	return string(b)
}
