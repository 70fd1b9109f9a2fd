package promptfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"github.com/nlpodyssey/safetensors"
)

// Load is load_prompt_cache: it returns the caches of the file at path, and the
// user's metadata under the keys that it was saved with. An error is an
// [*Error]; it wraps a [*reference.StateError] where the state of a cache is at
// fault.
//
// As upstream, lists without children at the end of a file are lost, because
// they leave no tensor. Where upstream takes the dots in the keys of metadata
// for a tree, the keys stay as they are.
func Load(path string) ([]reference.Cache, map[string]string, error) {
	file, cause := read(path)
	if cause != nil {
		return nil, nil, &Error{Path: path, What: "cannot be read", Err: cause}
	}
	caches, metadata, err := decode(file)
	if err != nil {
		err.Path = path
		return nil, nil, err
	}
	return caches, metadata, nil
}

// read returns the bytes of a file. What is no regular file, such as a pipe,
// might never end or never begin; a regular one may grow meanwhile.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", info.Size(), MaxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// decode takes the bytes of a file apart.
func decode(file []byte) ([]reference.Cache, map[string]string, *Error) {
	if err := checkSize(file); err != nil {
		return nil, nil, err
	}
	n, header, err := safetensors.ReadMetadata(file)
	if err != nil {
		return nil, nil, &Error{Field: "header", What: "this is no safetensors file, or not all of one; save the caches again", Err: err}
	}
	tensors, data := header.Tensors(), file[8+n:]
	m, failure := readMetadata(header.Metadata(), tensors)
	if failure != nil {
		return nil, nil, failure
	}
	root := &node{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) { // a name comes before those that it begins
		t := tensors[name]
		v, failure := leaf(name, *t, data[t.DataOffsets[0]:t.DataOffsets[1]], m.marks[name])
		if failure == nil {
			failure = root.put(name, v)
		}
		if failure != nil {
			return nil, nil, failure
		}
	}
	caches, failure := root.caches(m.classes)
	return caches, m.user, failure
}

// metadata is the metadata of a file, by their three groups of keys.
type metadata struct {
	user    map[string]string
	classes []string
	marks   map[string]string // by tensor
}

func readMetadata(all map[string]string, tensors map[string]*safetensors.TensorInfo) (metadata, *Error) {
	m := metadata{user: map[string]string{}, marks: map[string]string{}}
	classes, marks := 0, 0
	for key, value := range all {
		switch {
		case strings.HasPrefix(key, userKey):
			m.user[key[len(userKey):]] = value
		case strings.HasPrefix(key, classKey):
			classes++
		case strings.HasPrefix(key, markKey):
			marks++
		default:
			return m, fail(strconv.Quote(key), "a prompt cache has no such metadata; save the caches with mlx-lm 0.32")
		}
	}
	// Keys are numbered without gaps, so that each must be there up to their
	// count; the first of the marks has no twin.
	for i := range classes {
		class, err := lookup(all, classKey+strconv.Itoa(i))
		if err != nil {
			return m, err
		}
		m.classes = append(m.classes, class)
	}
	if _, err := lookup(all, noMark); err != nil {
		return m, err
	}
	for k := 1; 2*k <= marks; k++ {
		nameKey, key := markKey+strconv.Itoa(k)+".0", markKey+strconv.Itoa(k)+".1"
		name, err := lookup(all, nameKey)
		if err != nil {
			return m, err
		}
		mark, err := lookup(all, key)
		if err != nil {
			return m, err
		}
		if _, ok := tensors[name]; !ok || m.marks[name] != "" {
			return m, fail(nameKey, "%q is no tensor, or named twice; save the caches again", name)
		}
		if mark != scalarMark && mark != stringMark && mark != noneMark {
			return m, fail(key, "it says %q, not %s, %s or %s; save the caches with mlx-lm 0.32", mark, scalarMark, stringMark, noneMark)
		}
		m.marks[name] = mark
	}
	return m, nil
}

func lookup(all map[string]string, key string) (string, *Error) {
	value, ok := all[key]
	if !ok {
		return "", fail(key, "this key of the metadata is missing: the file is no prompt cache of mlx-lm 0.32; save the caches with that version")
	}
	return value, nil
}

// leaf turns a tensor into what it stands for. The result shares its data.
func leaf(name string, t safetensors.TensorInfo, data []byte, mark string) (reference.Value, *Error) {
	shape := make([]int, len(t.Shape))
	for i, extent := range t.Shape {
		if extent > math.MaxInt32 {
			return reference.Value{}, fail(name, "its shape is %v; an extent is at most %d", t.Shape, math.MaxInt32)
		}
		shape[i] = int(extent)
	}
	numbers := func() []int {
		list := make([]int, 0, len(data)/4)
		for ; len(data) > 0; data = data[4:] {
			list = append(list, int(int32(binary.LittleEndian.Uint32(data))))
		}
		return list
	}
	none, list := len(shape) == 1 && shape[0] == 0, len(shape) == 1 && t.DType == safetensors.I32
	switch {
	case mark == noneMark && none:
		return reference.Value{}, nil
	case mark == stringMark && (list || none):
		text := make([]rune, 0, len(data)/4)
		for _, r := range numbers() {
			if r < 0 || !utf8.ValidRune(rune(r)) {
				return reference.Value{}, fail(name, "%d is no code point of a text; save the caches again", r)
			}
			text = append(text, rune(r))
		}
		return reference.Value{Kind: reference.TextValue, Text: string(text)}, nil
	case mark == scalarMark && len(shape) == 0 && t.DType == safetensors.I32:
		return reference.Value{Kind: reference.IntValue, Int: numbers()[0]}, nil
	case mark == scalarMark && len(shape) == 0 && t.DType == safetensors.BOOL:
		return reference.Value{Kind: reference.BoolValue, Int: int(min(data[0], 1))}, nil
	case mark == "" && list:
		return reference.Value{Kind: reference.IntsValue, Ints: numbers()}, nil
	case mark == "":
		for dtype, same := range dtypes {
			if t.DType == same {
				return reference.Value{Kind: reference.TensorValue, Tensor: ring.Tensor{DType: dtype, Shape: shape, Data: data}}, nil
			}
		}
		return reference.Value{}, fail(name, "its data type is %v of shape %v; arrays are BF16, F16, F32 or U32, lists of numbers I32 of one axis", t.DType, shape)
	}
	return reference.Value{}, fail(name, "%v of shape %v is no %s; save the caches again", t.DType, shape, mark)
}

// node is a node of the tree that the names of tensors make: a leaf, or a list
// by index.
type node struct {
	leaf  bool
	value reference.Value
	kids  map[int]*node
}

// put adds a leaf; names come in order.
func (n *node) put(name string, v reference.Value) *Error {
	if err := checkDepth(name); err != nil {
		return err
	}
	for part := range strings.SplitSeq(name, ".") {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || strconv.Itoa(i) != part {
			return fail(strconv.Quote(name), "a tensor's name is numbers joined by dots; save the caches with mlx-lm 0.32")
		}
		if n.leaf {
			return fail(name, "another tensor's name begins this one; save the caches again")
		}
		if n.kids == nil {
			n.kids = map[int]*node{}
		}
		if n.kids[i] == nil {
			n.kids[i] = &node{}
		}
		n = n.kids[i]
	}
	n.leaf, n.value = true, v
	return nil
}

// list returns the kids of n as a list. An empty list leaves no tensor; only the
// first field of a state can be one.
func (n *node) list(name string) (reference.Value, *Error) {
	if n.leaf {
		return n.value, nil
	}
	out := reference.Value{Kind: reference.ListValue}
	left := len(n.kids)
	for i := 0; left > 0; i++ {
		kid, at := n.kids[i], name+"."+strconv.Itoa(i)
		switch {
		case kid != nil:
			left--
		case i == 0:
			kid = &node{}
		default:
			return out, fail(at, "this tensor is missing; save the caches again")
		}
		v, err := kid.list(at)
		if err != nil {
			return out, err
		}
		out.List = append(out.List, v)
	}
	return out, nil
}

// caches makes the caches of the root's kids.
func (n *node) caches(classes []string) ([]reference.Cache, *Error) {
	known := 0
	for i := range n.kids {
		if i >= len(classes) {
			return nil, fail(strconv.Itoa(i), "tensors of that name belong to a cache whose class is missing; save the caches again")
		}
		known = max(known, i+1)
	}
	for i, class := range classes[known:] {
		if class != "CacheList" {
			return nil, fail("cache "+strconv.Itoa(known+i), "its tensors are missing; save the caches again")
		}
	}
	var out []reference.Cache
	for i, class := range classes[:known] {
		kid := n.kids[i]
		if kid == nil {
			kid = &node{}
		}
		state, failure := kid.list(strconv.Itoa(i))
		if failure != nil {
			return nil, failure
		}
		c, err := reference.FromState(class, state)
		if err != nil {
			return nil, &Error{Field: "cache " + strconv.Itoa(i), What: "it cannot be restored; save it again", Err: err}
		}
		out = append(out, c)
	}
	return out, nil
}
