package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// peer is another implementation in a child process: see ci/bench/peer.py for
// what it is asked.
type peer struct {
	name string
	cmd  *exec.Cmd
	kill context.CancelFunc
	in   io.WriteCloser
	out  *bufio.Scanner
	errs *tail
}

const (
	maxAnswer = 64 << 10        // bytes of a line
	grace     = 5 * time.Second // for a peer to end once it is told to
)

// startPeer starts a command and reads who it is. Close it; ctx kills it.
func startPeer(ctx context.Context, command []string) (*peer, error) {
	ctx, kill := context.WithCancel(ctx)
	p := &peer{cmd: exec.CommandContext(ctx, command[0], command[1:]...), kill: kill, errs: &tail{}}
	p.cmd.Stderr = p.errs
	p.cmd.WaitDelay = time.Second
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		kill()
		return nil, fmt.Errorf("the peer cannot be started: %w", err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, maxAnswer)
	var hello struct {
		Peer string `json:"peer"`
	}
	if err = p.read(&hello); err == nil && hello.Peer == "" {
		err = p.fault("its first line does not say who it is")
	}
	if err != nil {
		return nil, errorsAfter(err, p.Close)
	}
	p.name = hello.Peer
	return p, nil
}

// Close lets the child end, and ends it if it does not.
func (p *peer) Close() error {
	defer p.kill()
	defer time.AfterFunc(grace, p.kill).Stop()
	_ = p.in.Close() // says that no more will come
	return p.cmd.Wait()
}

func (p *peer) fault(why string) error {
	text := fmt.Sprintf("the peer %s: %s", strings.Join(p.cmd.Args, " "), why)
	if said := strings.TrimSpace(string(p.errs.last)); said != "" {
		text += "; it said:\n" + said
	}
	return errors.New(text)
}

// read decodes the next line.
func (p *peer) read(v any) error {
	if !p.out.Scan() {
		why := "it ended"
		if err := p.out.Err(); err != nil {
			why = err.Error()
			p.kill()
		}
		_ = p.Close() // so that all it has said is here
		return p.fault(why)
	}
	if err := json.Unmarshal(p.out.Bytes(), v); err != nil {
		return p.fault(fmt.Sprintf("a line that is no answer: %v", err))
	}
	return nil
}

// peerAnswer is the answer to a request.
type peerAnswer struct {
	Seconds float64 `json:"seconds"`
	Bytes   int     `json:"bytes"`
	Error   string  `json:"error"`
}

func (p *peer) ask(request any) (a peerAnswer, err error) {
	line, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, p.fault(err.Error())
	}
	if err := p.read(&a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, p.fault(a.Error)
	}
	return a, nil
}

// peerWork is a peer made ready for one work.
type peerWork struct {
	peer  *peer
	bytes int // that its cache holds, as it counts them
}

// ready makes the peer ready for w, instead of the work before.
func (p *peer) ready(w Work) (*peerWork, error) {
	type setup struct {
		Kind Kind `json:"kind"`
		Shape
	}
	_, err := p.ask(map[string]any{"setup": setup{w.Kind, w.Shape}})
	return &peerWork{peer: p}, err
}

func (w *peerWork) run(n int) (time.Duration, error) {
	a, err := w.peer.ask(map[string]any{"run": n})
	w.bytes = a.Bytes
	return time.Duration(a.Seconds * 1e9), err
}

// tail keeps the end of what is written to it.
type tail struct{ last []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 4096
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-most):]
	return len(b), nil
}
