package host

import (
	"fmt"
	"strings"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/accelerated/kernels/conformance"
	"github.com/ebitengine/purego"
)

// planted are bugs: an expression that the source has once, and what stands
// there instead.
var planted = []struct {
	name     string
	attend   bool // it is in attention
	old, new string
}{
	{"a move wraps to the beginning for good", false, "skip + k < cycle ? skip + k : skip + k - cycle", "skip + k < cycle ? skip + k : 0"},
	{"a move forgets the last unit", false, "begin + a.piece < bytes ? begin + a.piece : bytes", "begin + a.piece < bytes ? begin + a.piece : bytes - unit"},
	{"a move takes all sources to be laid out as the first", false, "a.layout[r.source]", "a.layout[0]"},
	{"a move takes the first address for all", false, "(DEVICE const u8 *)a.base[r.source]", "(DEVICE const u8 *)a.base[0]"},
	{"a turn wraps to the beginning", false, "p[i] + skip < n ? p[i] + skip : p[i] + skip - n", "p[i] + skip < n ? p[i] + skip : 0"},
	{"a shift begins at the wrong end", false, "bool up = r.to < src", "bool up = r.to > src"},
	{"ranks close one row too high", false, "rows[2 * i + 1]", "rows[2 * i]"},
	{"codes are packed the other way round", false, "<< (i * a.bits)", "<< ((7 - i) * a.bits)"},
	{"a scale has the wrong sign", false, "if (!below)", "if (below)"},
	{"every other group has no scale", false, "k % (a.group / 8) == 0", "k % (a.group / 4) == 0"},
	{"a mask leaves out a query's own column", false, "last + 1 < s ? last + 1 : s", "last < s ? last : s"},
	{"a mask does not turn with the ring", false, "end > s ? end - s : 0", "0"},
	{"keys get the scales of the other group", true, "lane % 4 >= 2", "lane % 4 < 2"},
	{"values get the scales of the other group", true, "lane >= 16", "lane < 16"},
	{"the last tile counts columns twice", true, "column >= tile && column < end", "column < end"},
	{"sums stay what they were under a new maximum", true, "exponential(most[AT(lane, 1, 0)] - newest[AT(lane, 1, 0)])", "1.0f"},
	{"a weight's second part is its first", true, "halves(one, two, (lane & 4) != 0)", "halves(one, two, false)"},
	{"dequantizing rounds once", true, "rounded_any(BFLOAT16, product)", "product"},
	{"a split leaves out its last column", true, "end = first + a.tiles * LANES", "end = first + a.tiles * LANES - 1"},
	{"splits are joined without weights", true, "exponential(totals[2 * i] - most)", "1.0f"},
	{"queries take the wrong head", true, "h = head * a.ratio + i / a.n", "h = head + i / a.n"},
	{"no query sees its own column", true, "i32(column) <= i32(a.s) - i32(a.n) + i32(place[q])", "i32(column) < i32(a.s) - i32(a.n) + i32(place[q])"},
	{"all queries have the mask of the first", true, "(u64(row) * a.n + place[q]) * a.s", "(u64(row) * a.n) * a.s"},
}

// roomy has room behind each buffer, for bugs that read there.
type roomy struct{ *backend }

func (r roomy) Alloc(size int) (accelerated.Buffer, error) {
	b, err := r.backend.Alloc(size + 16<<20)
	if err == nil {
		b.(*Buffer).size = size
	}
	return b, err
}

// TestPlanted builds the kernels with all bugs, one of which is on at a time,
// and looks for each.
func TestPlanted(t *testing.T) {
	library(t)
	text := "static unsigned planted;\n" + kernels.HostSource() + `extern "C" void host_plant(u32 n) { planted = n; }` + "\n"
	for i, p := range planted {
		// What stands around an expression stays: a declaration, an operator, an if.
		old, new := p.old, p.new
		for _, around := range []string{"bool up = ", "end = ", "h = ", "if ", "<< "} {
			if strings.HasPrefix(old, around) {
				old, new = old[len(around):], new[len(around):]
			}
		}
		if n := strings.Count(text, p.old); n != 1 {
			t.Fatalf("%s: the source has %q %d times", p.name, p.old, n)
		}
		choice := p.old[:len(p.old)-len(old)] + fmt.Sprintf("(planted == %d ? (%s) : (%s))", i+1, new, old)
		text = strings.Replace(text, p.old, choice, 1)
	}
	path, err := build(text, false) // a sanitizer would end the program at the first bug
	if err != nil {
		t.Fatal(err)
	}
	l, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	var plant func(n uint32)
	if err := bind(handle, "host_plant", &plant); err != nil {
		t.Fatal(err)
	}
	got := kernels.New(roomy{&backend{library: l, live: map[*Buffer]struct{}{}}})
	defer got.Close()
	want := cpu.Open(cpu.Options{PlainGo: true, Workers: 1})
	defer want.Close()
	look := func(attend bool, seeds uint64) (uint64, error) {
		property := map[bool]func(got, want accelerated.Device, draw conformance.Draw) error{false: conformance.Run, true: conformance.Attend}[attend]
		for seed := range seeds {
			if err := property(got, want, conformance.Seeded(seed)); err != nil {
				return seed, err
			}
		}
		return seeds, nil
	}
	for _, attend := range []bool{false, true} {
		if _, err := look(attend, 40); err != nil {
			t.Fatal("without a bug:", err)
		}
	}
	for i, p := range planted {
		plant(uint32(i + 1))
		if seed, err := look(p.attend, 500); err == nil {
			t.Errorf("%s: survives", p.name)
		} else {
			t.Logf("%s: killed by seed %d", p.name, seed)
		}
	}
}
