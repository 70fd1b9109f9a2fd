package props

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"example.com/ringcheck/corpus"
)

// Serve speaks protocol 1 for t: it reads a request a line from in and writes
// an answer a line to out, until bye, the end of in, or an error of either. A
// request that cannot be understood or run is answered with a fault, and the
// next is read; a line over [MaxLine] ends it. ctx is passed on to t and seen
// between requests.
func Serve(ctx context.Context, t Target, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		answer, last := serveLine(ctx, t, line)
		if _, err := out.Write(answer); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
		if last {
			return nil
		}
	}
}

// serveLine answers one request; last after bye.
func serveLine(ctx context.Context, t Target, line []byte) (answer []byte, last bool) {
	r, err := decodeRequest(line)
	if err == nil && r.cmd == "hello" && r.protocol != Protocol {
		err = fmt.Errorf("protocol is %d, want %d", r.protocol, Protocol)
	}
	if err == nil && r.dir != "" && !filepath.IsAbs(r.dir) {
		err = fmt.Errorf("dir is %q, want an absolute path", r.dir)
	}
	if err == nil && slices.ContainsFunc(r.c.Ops, func(op corpus.Op) bool { return notOnWire(op.Verb) }) {
		err = fmt.Errorf("%s is not an operation of the protocol", corpus.Attend)
	}
	if err == nil && r.layout && t.Info().Level != Layout {
		err = errors.New("layout is asked for, hello does not claim it")
	}
	if err != nil {
		return encodeFault(r.seq, err.Error()), false
	}
	switch r.cmd {
	case "hello":
		return encodeHello(t.Info()), false
	case "bye":
		return []byte("{}\n"), true
	}
	steps, err := t.Run(ctx, r.c, r.dir)
	if err != nil {
		return encodeFault(r.seq, err.Error()), false
	}
	answer = encodeSteps(r.seq, steps, r.layout)
	if len(answer) > MaxLine {
		answer = encodeFault(r.seq, fmt.Sprintf("the answer takes %d bytes, a line at most %d", len(answer), MaxLine))
	}
	return answer, false
}
