package promptfile

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/ringcheck/reference"
	"github.com/nlpodyssey/safetensors"
)

// Save is save_prompt_cache: it writes caches, and metadata of the caller's own,
// to the file at path, which is replaced. The file appears whole or not at all,
// whatever ends the process. An error is an [*Error].
//
// What a batched cache of mlx-lm has pending is not part of its state and gets
// lost, as upstream. The classes that mlx-lm does not have come back as they
// were, and mlx-lm refuses their files.
func Save(path string, caches []reference.Cache, metadata map[string]string) error {
	file, err := encode(caches, metadata)
	if err != nil {
		err.Path = path
		return err
	}
	if err := publish(path, file); err != nil {
		return &Error{Path: path, What: "cannot be written", Err: err}
	}
	return nil
}

// publish writes a file under another name in the same folder and renames it.
func publish(path string, file []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".prompt-cache-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(file)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return err
}

// encode returns the bytes of a file.
func encode(caches []reference.Cache, metadata map[string]string) ([]byte, *Error) {
	w := writer{map[string]tensor{}, map[string]string{noMark: ""}, 0}
	for key, value := range metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, fail(strconv.Quote(key), "this key of the metadata, or its value, is not UTF-8; encode it as text")
		}
		w.metadata[userKey+key] = value
	}
	for i, c := range caches {
		class, state := reference.State(c)
		w.metadata[classKey+strconv.Itoa(i)] = class
		if err := w.value(strconv.Itoa(i), state); err != nil {
			return nil, err
		}
	}
	file, err := safetensors.Serialize(w.tensors, w.metadata)
	if err != nil {
		return nil, &Error{What: "cannot be encoded", Err: err}
	}
	if err := checkSize(file); err != nil {
		return nil, err
	}
	return file, nil
}

// writer collects the tensors and the metadata of a file.
type writer struct {
	tensors  map[string]tensor
	metadata map[string]string
	marks    int
}

// value adds the leaves of a node of a state.
func (w *writer) value(name string, v reference.Value) *Error {
	switch v.Kind {
	case reference.ListValue:
		for i, kid := range v.List {
			if err := w.value(name+"."+strconv.Itoa(i), kid); err != nil {
				return err
			}
		}
		return nil
	case reference.TensorValue:
		t := tensor{dtypes[v.Tensor.DType], make([]uint64, len(v.Tensor.Shape)), v.Tensor.Data}
		for i, extent := range v.Tensor.Shape {
			t.shape[i] = uint64(extent)
		}
		return w.add(name, t, "")
	case reference.IntsValue:
		return w.ints(name, v.Ints, "")
	case reference.IntValue:
		return w.ints(name, []int{v.Int}, scalarMark)
	case reference.BoolValue:
		return w.add(name, tensor{safetensors.BOOL, []uint64{}, []byte{byte(v.Int)}}, scalarMark)
	case reference.TextValue:
		var points []int
		for _, r := range v.Text {
			points = append(points, int(r))
		}
		return w.ints(name, points, stringMark)
	default: // None
		return w.ints(name, nil, noneMark)
	}
}

// ints adds numbers: one as a scalar where the mark says so, else a list. A list
// without elements is one of floats: MLX cannot tell.
func (w *writer) ints(name string, list []int, mark string) *Error {
	t := tensor{safetensors.I32, []uint64{uint64(len(list))}, nil}
	if len(list) == 0 {
		t.dtype = safetensors.F32
	}
	if mark == scalarMark {
		t.shape = []uint64{}
	}
	for _, n := range list {
		if n < math.MinInt32 || n > math.MaxInt32 {
			return fail(name, "the number %d does not fit the 32 bits of a file; start the cache anew", n)
		}
		t.data = binary.LittleEndian.AppendUint32(t.data, uint32(n))
	}
	return w.add(name, t, mark)
}

// add adds a tensor, and the mark of what is no array.
func (w *writer) add(name string, t tensor, mark string) *Error {
	if err := checkDepth(name); err != nil {
		return err
	}
	w.tensors[name] = t
	if mark != "" {
		w.marks++
		k := markKey + strconv.Itoa(w.marks)
		w.metadata[k+".0"], w.metadata[k+".1"] = name, mark
	}
	return nil
}

func checkDepth(name string) *Error {
	if n := strings.Count(name, ".") + 1; n > MaxDepth {
		return fail("", "a tensor's name has %d numbers, at most %d are allowed; put fewer lists of caches into lists", n, MaxDepth)
	}
	return nil
}

// checkSize refuses a file that is too large.
func checkSize(file []byte) *Error {
	if len(file) > MaxFile {
		return fail("", "there are more than %d bytes; save fewer caches in one file", MaxFile)
	}
	if len(file) < 8 {
		return fail("", "there are %d bytes, too few for a safetensors file; save the caches again", len(file))
	}
	if n := binary.LittleEndian.Uint64(file); n > MaxHeader {
		return fail("header", "it has %d bytes, at most %d are allowed; save fewer caches or less metadata in one file", n, MaxHeader)
	}
	return nil
}
