package cpu

import (
	"sync"
	"sync/atomic"
)

// share is the work, in bytes moved or the like of it, from which it is worth
// waking the workers.
const share = 256 << 10

// task is work that falls into items which can be done in any order.
type task interface {
	item(i int, s *scratch)
}

// job is one task while it is being done.
type job struct {
	task
	n    int64
	next atomic.Int64
	// helpers counts the workers that are at it; it is -1 while nobody may
	// join. A worker that comes late, to a job that is done or to the next one
	// in its place, finds out from it.
	helpers atomic.Int64
	left    chan bool // tells the caller that a worker has left
}

// do works off items until none is left.
func (j *job) do(s *scratch) {
	for {
		i := j.next.Add(1) - 1
		if i >= j.n {
			return
		}
		j.item(int(i), s)
	}
}

// help is a worker's part of a job.
func (j *job) help(s *scratch, fence func()) {
	for {
		n := j.helpers.Load()
		if n < 0 {
			return
		}
		if j.helpers.CompareAndSwap(n, n+1) {
			break
		}
	}
	j.do(s)
	fence()
	j.helpers.Add(-1)
	select {
	case j.left <- true:
	default: // the caller has been told already
	}
}

// finish waits for the workers that have joined, and keeps others from joining.
func (j *job) finish() {
	for !j.helpers.CompareAndSwap(0, -1) {
		<-j.left
	}
}

// workers are goroutines that wait for jobs, from start to stop.
type workers struct {
	n     int
	fence func() // ends a worker's part of a job
	jobs  chan *job
	done  sync.WaitGroup

	mu      sync.Mutex
	idle    []*job     // for reuse
	scratch []*scratch // not in use
}

func (w *workers) start(n int, fence func()) {
	w.n, w.fence = n, fence
	w.jobs = make(chan *job, 4*n)
	for range n {
		w.done.Go(func() {
			var s scratch
			for j := range w.jobs {
				j.help(&s, w.fence)
			}
		})
	}
}

// stop ends the workers; no job may be under way.
func (w *workers) stop() {
	close(w.jobs)
	w.done.Wait()
}

// run does all n items of a task before it returns: on the calling goroutine,
// and on the workers that come in time where bytes says that the task is large.
func (w *workers) run(t task, n, bytes int) {
	j, s := w.borrow()
	j.task, j.n = t, int64(n)
	j.next.Store(0)
	helpers := min(w.n, n-1, bytes/share)
	if helpers > 0 { // else nobody may join, also no worker that comes late to an earlier job
		j.helpers.Store(0)
	}
	for range helpers {
		select {
		case w.jobs <- j:
		default: // all are busy with other callers' work
		}
	}
	j.do(s)
	w.fence()
	if helpers > 0 {
		j.finish()
	}
	j.task = nil
	w.giveBack(j, s)
}

func (w *workers) borrow() (*job, *scratch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.idle) - 1
	if n < 0 {
		j := &job{left: make(chan bool, 1)}
		j.helpers.Store(-1)
		return j, &scratch{}
	}
	j, s := w.idle[n], w.scratch[n]
	w.idle, w.scratch = w.idle[:n], w.scratch[:n]
	return j, s
}

func (w *workers) giveBack(j *job, s *scratch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle, w.scratch = append(w.idle, j), append(w.scratch, s)
}

// scratch is memory of one worker.
type scratch struct {
	strip  []byte
	values []float32
}

// bytes returns n bytes that hold anything.
func (s *scratch) bytes(n int) []byte {
	if cap(s.strip) < n {
		s.strip = make([]byte, n)
	}
	return s.strip[:n]
}

// floats returns n numbers that hold anything.
func (s *scratch) floats(n int) []float32 {
	if cap(s.values) < n {
		s.values = make([]float32, n)
	}
	return s.values[:n]
}
