package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
)

// The contenders, besides [CopyMemory] and [ReadMemory].
const (
	OnDevice = "device" // the device that was asked for
	PlainGo  = "plain"  // the device cpu without assembly
	Peer     = "peer"
)

// Options say what to measure.
type Options struct {
	Device string        // as accelerated.Open takes it
	Plain  bool          // on the device cpu, measure it without assembly, too
	Peer   []string      // command of the peer; nil: none
	Rounds int           // at least 1
	Slot   time.Duration // how long a contender works in a round, about; it does at least one step
	Works  []Work
	Sweeps []Sweep
	Done   func() // is called after each work; may be nil
}

// contender does steps of one work, after one that warms up.
type contender struct {
	name  string
	run   func(n int) (time.Duration, error)
	cycle int // n is a multiple of it
	close func() error
	n     int // steps a round
}

// bench is one run.
type bench struct {
	Options
	devices map[string]accelerated.Device // by contender
	onCPU   bool
	peer    *peer
}

// Measure does all works of o. The devices and the peer are closed when it
// returns. The error is of a device or a peer that failed, or of ctx; the report
// then holds what was measured before.
func Measure(ctx context.Context, o Options) (r *Report, err error) {
	b := &bench{Options: o, devices: map[string]accelerated.Device{}}
	defer func() {
		if closing := b.close(); err == nil {
			err = closing
		}
	}()
	r = &Report{Machine: thisMachine(), Rounds: o.Rounds, Names: map[string]string{}}
	dev, err := accelerated.Open(o.Device)
	if err != nil {
		return r, err
	}
	b.devices[OnDevice] = dev
	if _, b.onCPU = dev.(*cpu.Device); b.onCPU && o.Plain {
		plain := cpu.Open(cpu.Options{PlainGo: true})
		if plain.Name() != dev.Name() {
			b.devices[PlainGo] = plain
		} else {
			r.LeftOut = append(r.LeftOut, "assembly: this processor has none")
			if err := plain.Close(); err != nil {
				return r, err
			}
		}
	}
	for name, dev := range b.devices {
		r.Names[name] = dev.Name()
	}
	if len(o.Peer) > 0 {
		if b.peer, err = startPeer(ctx, o.Peer); err != nil {
			return r, err
		}
		r.Names[Peer] = b.peer.name
	}
	for _, w := range o.Works {
		result, err := b.measure(ctx, w)
		if err != nil {
			return r, err
		}
		r.Table = append(r.Table, result)
	}
	for _, s := range o.Sweeps {
		g := Growth{Name: s.Name, Axis: s.Axis, Values: s.Values, Labels: s.Labels}
		for _, w := range s.Works {
			result, err := b.measure(ctx, w)
			if err != nil {
				return r, err
			}
			g.Results = append(g.Results, result)
		}
		r.Growth = append(r.Growth, g)
	}
	r.Machine.After = load()
	return r, nil
}

func (b *bench) close() error {
	var first error
	for _, dev := range b.devices {
		if err := dev.Close(); first == nil {
			first = err
		}
	}
	if b.peer != nil {
		if err := b.peer.Close(); first == nil {
			first = err
		}
	}
	return first
}

// measure does one work, all contenders in turns.
func (b *bench) measure(ctx context.Context, w Work) (_ Result, err error) {
	r := Result{Work: w, Times: map[string]Samples{}, Least: w.least(), Limit: w.limit()}
	if r.Written, err = written(b.devices[OnDevice], w); err != nil {
		return r, err
	}
	var list []*contender
	defer func() {
		for _, c := range list {
			if closing := c.close(); err == nil {
				err = closing
			}
		}
	}()
	var ours *subject
	for _, name := range []string{OnDevice, PlainGo} {
		dev := b.devices[name]
		if dev == nil {
			continue
		}
		s, err := newSubject(dev, w)
		if err != nil {
			return r, err
		}
		list = append(list, &contender{name: name, run: s.run, cycle: s.cycle, close: s.Close})
		if name == OnDevice {
			ours = s
		}
	}
	var peers *peerWork
	if b.peer != nil {
		if peers, err = b.peer.ready(w); err != nil {
			return r, err
		}
		list = append(list, &contender{name: Peer, run: peers.run, cycle: 1, close: func() error { return nil }})
	}
	if name := w.Kind.yardstick(); name != "" && b.onCPU {
		y, err := newYardstick(name, r.Least)
		if err != nil {
			return r, err
		}
		list = append(list, &contender{name: name, run: y.run, cycle: 1, close: y.Close})
	}
	for _, c := range list {
		if err := c.calibrate(b.Slot); err != nil {
			return r, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	runtime.GC() // what setting up has left
	others := b.watchOthers()
	for range b.Rounds {
		for _, c := range list {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			t, err := c.round()
			if err != nil {
				return r, fmt.Errorf("%s: %w", w.Name, err)
			}
			r.Times[c.name] = append(r.Times[c.name], t)
		}
		slices.Reverse(list) // so that nobody always follows the same one
	}
	r.Others = others()
	r.Held = ours.held
	if ours.alone {
		r.Live = b.devices[OnDevice].Stats().LiveBytes
	}
	if peers != nil {
		r.PeerHeld = peers.bytes
	}
	if b.Done != nil {
		b.Done()
	}
	return r, nil
}

// watchOthers begins to watch the load. What it returns says which part of the
// machine's time other processes have taken since; 0 where that is not known.
func (b *bench) watchOthers() func() float64 {
	ours := []string{"self"}
	if b.peer != nil {
		ours = append(ours, strconv.Itoa(b.peer.cmd.Process.Pid))
	}
	before, ok := useOfCPU(ours...)
	return func() float64 {
		after, alsoOK := useOfCPU(ours...)
		if total := after.total - before.total; ok && alsoOK && total > 0 {
			return max(0, float64(after.all-before.all-after.own+before.own)/float64(total))
		}
		return 0
	}
}

// calibrate finds how many steps fill a slot.
func (c *contender) calibrate(slot time.Duration) error {
	for c.n = c.cycle; ; c.n *= 2 {
		took, err := c.run(c.n)
		if err != nil {
			return err
		}
		if 4*took >= slot {
			cycles := float64(slot) / float64(took+1) * float64(c.n/c.cycle)
			c.n = c.cycle * max(1, int(cycles))
			return nil
		}
	}
}

// round is the mean time of a step, in seconds.
func (c *contender) round() (float64, error) {
	if _, err := c.run(c.cycle); err != nil { // warms up
		return 0, err
	}
	took, err := c.run(c.n)
	return took.Seconds() / float64(c.n), err
}
