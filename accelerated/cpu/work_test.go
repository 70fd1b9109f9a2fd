package cpu

import (
	"sync"
	"sync/atomic"
	"testing"
)

// meeting is a task each of whose items waits until all have begun: it ends only
// if as many goroutines are at it at once.
type meeting struct{ all sync.WaitGroup }

func (m *meeting) item(int, *scratch) {
	m.all.Done()
	m.all.Wait()
}

// TestWorkersJoin: a large task gets all workers.
func TestWorkersJoin(t *testing.T) {
	const n = 3
	var w workers
	w.start(n, func() {})
	for range 200 {
		var m meeting
		m.all.Add(n + 1)
		w.run(&m, n+1, share*n)
	}
	w.stop()
}

// tally counts how often each item was done, and by how many at once at most.
type tally struct {
	items []atomic.Int32
	at    atomic.Int32
	most  atomic.Int32
}

func (c *tally) item(i int, _ *scratch) {
	if n := c.at.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	c.items[i].Add(1)
	c.at.Add(-1)
}

// TestWorkersOnce: with many callers at once, each item of each task is done
// once, and none after its run has returned; a small task stays with its
// caller.
func TestWorkersOnce(t *testing.T) {
	var w workers
	w.start(2, func() {})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for i := range 500 {
				c := tally{items: make([]atomic.Int32, i%7)}
				bytes := share * (i % 3)
				w.run(&c, len(c.items), bytes)
				for j := range c.items {
					if n := c.items[j].Load(); n != 1 {
						t.Errorf("item %d was done %d times", j, n)
					}
				}
				if bytes == 0 && c.most.Load() > 1 {
					t.Errorf("a small task was spread over %d goroutines", c.most.Load())
				}
			}
		})
	}
	callers.Wait()
	w.stop()
}
