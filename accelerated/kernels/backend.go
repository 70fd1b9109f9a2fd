package kernels

import "example.com/ringcheck/accelerated"

// Backend is the little that a device must be able to do so that the kernels
// make an [accelerated.Device] of it: memory, and launches in order. It knows
// no cache and no plan. [New] does the rest, the same for every backend.
//
// Launches and uploads take effect in the order in which they are given and
// may return before they are done. What goes wrong later surfaces at the next
// Download or Sync. A backend never keeps a pointer to host memory after a
// call has returned. Calls may come from several goroutines, one at a time.
type Backend interface {
	// Name says what runs the work, for a person: "cuda (NVIDIA H200)".
	Name() string

	// Alloc returns at least size bytes (size is at least 1), aligned to
	// accelerated.Align bytes, with undefined contents, from a pool where there
	// is one; an [*accelerated.MemoryError] where there is no room.
	Alloc(size int) (accelerated.Buffer, error)

	// Free gives a buffer back. Work begun before still completes.
	Free(accelerated.Buffer)

	// Launch runs kernels one after the other.
	Launch(batch ...Launch) error

	// Upload copies src to dst, from offset on.
	Upload(dst accelerated.Buffer, offset int, src []byte) error

	// Download waits for all work, then copies len(dst) bytes of src, from
	// offset on.
	Download(dst []byte, src accelerated.Buffer, offset int) error

	// Sync waits for all work and returns what went wrong, if anything did.
	Sync() error

	// Stats counts what is held now.
	Stats() accelerated.Stats

	// Close waits for all work and gives everything back. It is idempotent.
	Close() error
}

// Addresser is a [Backend] whose kernels can be given a buffer's address as a
// number: then one launch moves from more stores than it could have buffers.
type Addresser interface {
	// Address is where a buffer begins; it is never 0.
	Address(accelerated.Buffer) uint64
}

// Launch is one kernel over a one-dimensional grid: Groups groups of Threads
// threads. The kernel's parameters are the buffers, as pointers and in order,
// and then the bytes of one argument structure, by value.
type Launch struct {
	Kernel  string
	Groups  int
	Threads int
	Buffers []Binding
	Args    []byte
}

// Binding is a place in a buffer that a kernel gets a pointer to. Offset is a
// multiple of 16.
type Binding struct {
	Buffer accelerated.Buffer
	Offset int
}
