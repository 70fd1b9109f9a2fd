package promptfile

import (
	"fmt"
	"path/filepath"
	"strings"

	"example.com/ringcheck/reference/ring"
	"github.com/nlpodyssey/safetensors"
)

// What a file may have at most. A model of 100 layers makes a header of about
// 100 KiB and names of 3 numbers.
const (
	MaxFile   = 1 << 30 // bytes in all
	MaxHeader = 4 << 20 // bytes of the JSON header: names, shapes, metadata
	MaxDepth  = 32      // numbers in a tensor's name; a list of caches takes two
)

const suffix = ".safetensors"

// Path returns where the file of that name stands in the folder dir. Files of
// mlx-lm end in ".safetensors"; a name that does not gets that ending.
func Path(dir, name string) string {
	if !strings.HasSuffix(name, suffix) {
		name += suffix
	}
	return filepath.Join(dir, name)
}

// Error refuses a file that is no prompt cache, or caches that cannot be saved.
type Error struct {
	Path  string
	Field string // name of a tensor or a key of the metadata, "header", "cache 3", or "" for all of the file
	What  string // what is wrong with it, and what to do
	Err   error  // the cause, where there is one
}

func (e *Error) Error() string {
	s := e.Path + ": "
	if e.Field != "" {
		s += e.Field + ": "
	}
	s += e.What
	if e.Err != nil {
		s += fmt.Sprintf(": %.300s", e.Err) // a library may quote half the file
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error about one place; whoever knows the path adds it.
func fail(field, format string, args ...any) *Error {
	return &Error{Field: field, What: fmt.Sprintf(format, args...)}
}

// tensor is an array of a file. It is the library's View; the library's own
// refuses scalars.
type tensor struct {
	dtype safetensors.DType
	shape []uint64 // never nil, which the header would say as null
	data  []byte
}

func (t tensor) DType() safetensors.DType { return t.dtype }
func (t tensor) Shape() []uint64          { return t.shape }
func (t tensor) Data() []byte             { return t.data }
func (t tensor) DataLen() uint64          { return uint64(len(t.data)) }

// dtypes are the data types of arrays. Those of what is no array are I32, BOOL
// and, without elements, F32.
var dtypes = map[ring.DType]safetensors.DType{
	ring.BFloat16: safetensors.BF16,
	ring.Float16:  safetensors.F16,
	ring.Float32:  safetensors.F32,
	ring.Uint32:   safetensors.U32,
}

// Keys of the metadata.
const (
	userKey  = "0."  // and a key of the user's
	classKey = "1."  // and the index of a cache: its class
	markKey  = "2."  // and k from 1 on, and .0: a tensor's name, or .1: its mark
	noMark   = "2.0" // is there always, so that the list of marks is never empty
)

// Marks say what a tensor stands for that was no array in Python.
const (
	scalarMark = "scalar"
	stringMark = "string"
	noneMark   = "none"
)
