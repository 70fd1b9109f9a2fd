package ring

import (
	"errors"
	"fmt"
)

// Coded is an error that refuses an operation: nothing has changed, and Code
// is the case format's name for the reason.
type Coded interface {
	error
	Code() string
}

// CodeOf returns the code of the first [Coded] error in err's chain, or "".
func CodeOf(err error) string {
	var c Coded
	if errors.As(err, &c) {
		return c.Code()
	}
	return ""
}

// Codes lists every code of the case format, in the order in which they are
// raised where several apply.
var Codes = []string{
	"closed", "busy", "read_open", "not_supported", "pending_padding",
	"no_tokens", "rows", "shape", "dtype", "range", "not_trimmable", "over_trim",
	"window", "max_size", "keep", "left_padding_on_non_empty", "empty", "quant", "raises",
}

// ClosedError refuses an operation on a cache after Close.
type ClosedError struct{ Op string }

func (e *ClosedError) Code() string { return "closed" }
func (e *ClosedError) Error() string {
	return fmt.Sprintf("%s: the cache is closed; open a new one", e.Op)
}

// BusyError refuses an operation that began while another was running on the
// same cache: a cache belongs to one goroutine at a time.
type BusyError struct{ Op string }

func (e *BusyError) Code() string { return "busy" }
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: another operation is running on this cache; confine a cache to one goroutine", e.Op)
}

// ReadOpenError refuses a write while a read of the same cache is open.
type ReadOpenError struct{ Op string }

func (e *ReadOpenError) Code() string { return "read_open" }
func (e *ReadOpenError) Error() string {
	return fmt.Sprintf("%s: a read of this cache is open; close it first", e.Op)
}

// NotSupportedError refuses an operation that the kind of cache does not have.
type NotSupportedError struct{ Op, Kind string }

func (e *NotSupportedError) Code() string { return "not_supported" }
func (e *NotSupportedError) Error() string {
	return fmt.Sprintf("%s: not supported by %s", e.Op, e.Kind)
}

// PendingPaddingError refuses an operation while right padding is pending.
type PendingPaddingError struct{ Op string }

func (e *PendingPaddingError) Code() string { return "pending_padding" }
func (e *PendingPaddingError) Error() string {
	return fmt.Sprintf("%s: right padding is pending; call Finalize first", e.Op)
}

// NoTokensError refuses a write of no columns.
type NoTokensError struct{ Op string }

func (e *NoTokensError) Code() string { return "no_tokens" }
func (e *NoTokensError) Error() string {
	return fmt.Sprintf("%s: no tokens; give at least one column a row", e.Op)
}

// RowsError refuses a list or an array whose number of rows is not the
// cache's. What names the argument.
type RowsError struct {
	Op, What  string
	Got, Want int
}

func (e *RowsError) Code() string { return "rows" }
func (e *RowsError) Error() string {
	return fmt.Sprintf("%s: %s has %d rows, the cache %d", e.Op, e.What, e.Got, e.Want)
}

// ShapeError refuses an array or a list whose extent does not fit.
type ShapeError struct {
	Op, What  string
	Got, Want []int
}

func (e *ShapeError) Code() string { return "shape" }
func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s: %s is %v, want %v", e.Op, e.What, e.Got, e.Want)
}

// DTypeError refuses an array whose data type is not the cache's.
type DTypeError struct {
	Op        string
	Got, Want DType // Want is 0 where any type of float would do
}

func (e *DTypeError) Code() string { return "dtype" }
func (e *DTypeError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("%s: data type is %v, want bfloat16, float16 or float32", e.Op, e.Got)
	}
	return fmt.Sprintf("%s: data type is %v, the cache's is %v", e.Op, e.Got, e.Want)
}

// RangeError refuses a number outside [Low, High].
type RangeError struct {
	Op, What       string
	Got, Low, High int
}

func (e *RangeError) Code() string { return "range" }
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: %s is %d, want %d to %d", e.Op, e.What, e.Got, e.Low, e.High)
}

// NotTrimmableError refuses to trim a cache that has filled its window, or one
// whose state cannot be trimmed at all (MaxSize 0).
type NotTrimmableError struct {
	Op             string
	Total, MaxSize int
}

func (e *NotTrimmableError) Code() string { return "not_trimmable" }
func (e *NotTrimmableError) Error() string {
	if e.MaxSize == 0 {
		return fmt.Sprintf("%s: this state cannot be trimmed; restore a snapshot instead", e.Op)
	}
	return fmt.Sprintf("%s: %d tokens fill the window of %d; restore a snapshot or recompute instead", e.Op, e.Total, e.MaxSize)
}

// OverTrimError refuses to trim more tokens than the shortest row holds.
type OverTrimError struct {
	Op      string
	N, Held int
}

func (e *OverTrimError) Code() string { return "over_trim" }
func (e *OverTrimError) Error() string {
	return fmt.Sprintf("%s: n is %d, the shortest row holds %d", e.Op, e.N, e.Held)
}

// WindowError refuses an attention window below 1.
type WindowError struct {
	Op     string
	Window int
}

func (e *WindowError) Code() string { return "window" }
func (e *WindowError) Error() string {
	return fmt.Sprintf("%s: window is %d, want at least 1", e.Op, e.Window)
}

// MaxSizeError refuses a window below 1, or two caches of different windows.
type MaxSizeError struct {
	Op        string
	Got, Want int // Want is 0 where any size from 1 on would do
}

func (e *MaxSizeError) Code() string { return "max_size" }
func (e *MaxSizeError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("%s: max size is %d, want at least 1", e.Op, e.Got)
	}
	return fmt.Sprintf("%s: max size is %d, the other cache's is %d", e.Op, e.Got, e.Want)
}

// KeepError refuses attention sinks.
type KeepError struct {
	Op   string
	Keep int
}

func (e *KeepError) Code() string { return "keep" }
func (e *KeepError) Error() string {
	return fmt.Sprintf("%s: keep is %d; sinks are not supported here, use 0", e.Op, e.Keep)
}

// LeftPaddingError refuses left padding on a cache that holds columns.
type LeftPaddingError struct{ Op string }

func (e *LeftPaddingError) Code() string { return "left_padding_on_non_empty" }
func (e *LeftPaddingError) Error() string {
	return fmt.Sprintf("%s: left padding can only be announced before the first column", e.Op)
}

// EmptyError refuses to read a cache that holds no column.
type EmptyError struct{ Op string }

func (e *EmptyError) Code() string  { return "empty" }
func (e *EmptyError) Error() string { return fmt.Sprintf("%s: cache is empty", e.Op) }

// QuantError refuses a group size, a width in bits or a head width that cannot
// be quantized, or two caches that differ in them.
type QuantError struct {
	Op                   string
	GroupSize, Bits, Dim int
}

func (e *QuantError) Code() string { return "quant" }
func (e *QuantError) Error() string {
	return fmt.Sprintf("%s: group size %d, bits %d, head width %d: want groups of 32, 64 or 128 that divide the width, bits 2, 3, 4, 5, 6 or 8, and the same in every cache",
		e.Op, e.GroupSize, e.Bits, e.Dim)
}

// RaisesError stands where mlx-lm raises an error that has no code of its own.
type RaisesError struct{ Op, Why string }

func (e *RaisesError) Code() string { return "raises" }
func (e *RaisesError) Error() string {
	return fmt.Sprintf("%s: mlx-lm raises: %s", e.Op, e.Why)
}
