package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"example.com/ringcheck/ci/quantize/groups"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// chunk is how many groups a request has at most.
const chunk = 8192

// request is what the child has been asked: to quantize these groups, an array
// of shape [1, 1, count, groupSize].
type request struct {
	combination
	groups ring.Array
	last   bool // of its combination
}

// ask sends count groups of every combination to the child, request by
// request, and then closes in. It runs ahead of whoever reads the answers.
func ask(ctx context.Context, in io.WriteCloser, count int, seed uint64, asked chan<- request) error {
	for i, c := range combinations() {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for left := count; left > 0; left -= chunk {
			n := min(left, chunk)
			r := request{c, groups.Make(rng, c.dtype, c.groupSize, c.bits, n), left <= chunk}
			if _, err := fmt.Fprintln(in, c.dtype, c.groupSize, c.bits, n); err != nil {
				return err
			}
			if _, err := in.Write(r.groups.Data); err != nil {
				return err
			}
			select {
			case asked <- r:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return in.Close()
}

// The arrays of an answer.
const (
	packed = iota
	scales
	biases
	back  // the groups, dequantized
	other // the codes, dequantized with the first two elements of each group
	arrays
)

// tally counts groups, bytes compared, bytes that differ in each array, and
// NaNs that were made equal.
type tally struct {
	groups, bytes int
	differ        [arrays]int
	nans          int
}

func (t tally) String() string {
	d := t.differ
	return fmt.Sprintf("%9d %13d | %8d %8d %8d %8d %8d | %d", t.groups, t.bytes, d[packed], d[scales], d[biases], d[back], d[other], t.nans)
}

func (t tally) differing() int {
	n := 0
	for _, d := range t.differ {
		n += d
	}
	return n
}

func (t *tally) merge(o tally) {
	t.groups += o.groups
	t.bytes += o.bytes
	t.nans += o.nans
	for i, d := range o.differ {
		t.differ[i] += d
	}
}

// add reads the child's answer to r and compares it with the reference's. It
// describes the first difference, where there is one. What was compared, NaNs
// made equal, goes into digest.
func (t *tally) add(r request, answers io.Reader, digest io.Writer) (difference string, err error) {
	want, err := answer(r)
	if err != nil {
		return "", err
	}
	t.groups += r.groups.Columns()
	for i, ours := range want {
		theirs := make([]byte, len(ours.Data))
		if _, err := io.ReadFull(answers, theirs); err != nil {
			return "", fmt.Errorf("the child's answer is too short: %w", err)
		}
		if ours.DType != ring.Uint32 && !bytes.Equal(ours.Data, theirs) {
			t.nans += equalNaNs(ours.DType, theirs)
		}
		digest.Write(theirs)
		t.bytes += len(theirs)
		for at := range theirs {
			if theirs[at] == ours.Data[at] {
				continue
			}
			t.differ[i]++
			if difference == "" {
				difference = describe(r, i, ours, theirs, at)
			}
		}
	}
	return difference, nil
}

// answer is what the reference makes of a request.
func answer(r request) ([arrays]ring.Array, error) {
	planes, err := reference.Quantize(r.groups, r.groupSize, r.bits)
	if err != nil {
		return [arrays]ring.Array{}, err
	}
	own, err := reference.Dequantize(planes, r.groupSize, r.bits)
	if err != nil {
		return [arrays]ring.Array{}, err
	}
	foreign, err := reference.Dequantize(ring.Planes{planes[0], element(r.groups, 0), element(r.groups, 1)}, r.groupSize, r.bits)
	if err != nil {
		return [arrays]ring.Array{}, err
	}
	return [arrays]ring.Array{packed: planes[0], scales: planes[1], biases: planes[2], back: own, other: foreign}, nil
}

// element returns element i of every group, as an array of groups of one.
func element(a ring.Array, i int) ring.Array {
	size, stride := a.DType.Size(), a.DType.Size()*a.Shape[3]
	one := ring.Array{DType: a.DType, Shape: [4]int{1, 1, a.Columns(), 1}}
	for at := i * size; at < len(a.Data); at += stride {
		one.Data = append(one.Data, a.Data[at:at+size]...)
	}
	return one
}

// equalNaNs gives every NaN in data the bits of the reference's, and returns
// how many had others.
func equalNaNs(t ring.DType, data []byte) int {
	changed := 0
	nan := reference.FloatBits(t, float32(math.NaN()))
	for ; len(data) > 0; data = data[t.Size():] {
		u := bitsOf(t, data)
		if f := reference.FloatFromBits(t, u); f == f || u == nan {
			continue
		}
		if t.Size() == 2 {
			binary.LittleEndian.PutUint16(data, uint16(nan))
		} else {
			binary.LittleEndian.PutUint32(data, nan)
		}
		changed++
	}
	return changed
}

func bitsOf(t ring.DType, data []byte) uint32 {
	if t.Size() == 2 {
		return uint32(binary.LittleEndian.Uint16(data))
	}
	return binary.LittleEndian.Uint32(data)
}

// describe says what differs in array i at a byte, and for which group.
func describe(r request, i int, ours ring.Array, theirs []byte, at int) string {
	width := len(theirs) / r.groups.Columns()
	group := at / width
	size := r.groups.DType.Size() * r.groupSize
	return fmt.Sprintf("%s of a group of kind %q\n  group %x\n  MLX   %x\n  ours  %x",
		[arrays]string{"packed codes", "scale", "bias", "dequantized", "dequantized with the first two elements as scale and bias"}[i],
		groups.Kinds[group%len(groups.Kinds)].Name,
		r.groups.Data[group*size:(group+1)*size],
		theirs[group*width:(group+1)*width],
		ours.Data[group*width:(group+1)*width])
}
