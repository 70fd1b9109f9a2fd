package draw

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// parse makes a case of operations, one a line; fields go into its header.
func parse(t testing.TB, fields, ops string) corpus.Case {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(ops), "\n")
	text := `{"schema":"ringcheck/case/v1","name":"drawn","source":"by hand","shape":{"kv_heads":1,"key_dim":4,"value_dim":4,"dtype":"float32"}` +
		fields + `,"ops":[` + strings.Join(lines, ",") + "]}"
	c, err := corpus.Parse([]byte(text), "drawn.json")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answers are the reference's.
func answers(t testing.TB, c corpus.Case) []corpus.Step {
	t.Helper()
	steps, err := props.ReferenceTarget().Run(context.Background(), c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// drawing draws c as a target answers it that is the reference but for what
// wrong makes of its answers.
func drawing(t testing.TB, c corpus.Case, level props.Level, wrong func([]corpus.Step)) *Drawing {
	t.Helper()
	in := Input{Case: c, Reference: answers(t, c), Target: "port 1.0", Level: level, Answers: answers(t, c)}
	if wrong != nil {
		wrong(in.Answers)
		if d := props.CompareRuns(c, in.Reference, in.Answers, level); d != nil {
			in.Finding = d
		}
	}
	return New(in)
}

// text is a step as text.
func text(t testing.TB, d *Drawing, width, step int) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Text(&b, TextOptions{Width: width, From: step, To: step + 1}); err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(b.String(), "\n#")
	if !ok {
		t.Fatalf("no step %d in\n%s", step, b.String())
	}
	return "#" + after
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got); diff != "" {
		t.Errorf("-want +got:\n%s\nall:\n%s", diff, got)
	}
}

const wrapping = `
{"op":"new","out":"b1","kind":"batch_rotating","max_size":4,"left_padding":[0,2]}
{"op":"update","cache":"b1","tokens":[[1,2,3],[-1,-2,11]]}
{"op":"update","cache":"b1","tokens":[[4],[12]]}
{"op":"mask","cache":"b1","n":1}
{"op":"update","cache":"b1","tokens":[[5],[13]]}
{"op":"mask","cache":"b1","n":2}
{"op":"update","cache":"b1","tokens":[[6,7],[14,15]]}`

func TestRing(t *testing.T) {
	d := drawing(t, parse(t, "", wrapping), props.Layout, nil)
	same(t, text(t, d, 80, 1), `
#1 b1.update [[1 2 3] [-1 -2 11]]
  offset [3 1]  left_padding [0 2]  idx 3  total 3  rotated false  ends null
  size 3  trimmable true  buffer 3
  b1 holds and returned
  column  0  1  2
  row 0   1  2  3
  row 1  -1 -2|11
  idx              ↑ next: the buffer grows

-7 padding
`)
	same(t, text(t, d, 80, 4), `
#4 b1.update [[5] [13]]
  offset [5 3]  left_padding [-1 1]  idx 1  total 5  rotated true  ends null
  size 4  trimmable false  buffer 4
  b1 holds and returned
  wrapped: order 1 is the oldest column
  column  0  1  2  3
  order   4  1  2  3
  row 0   5  2  3  4
  row 1  13|-2|11 12
  idx        ↑ next

-7 padding
`)
	same(t, text(t, d, 80, 6), `
#6 b1.update [[6 7] [14 15]]
  offset [7 5]  left_padding [-2 0]  idx 5  total 7  rotated false  ends null
  size 4  trimmable false  buffer 5
  b1 holds and returned
  column  0  1  2  3  4
  row 0   3  4  5  6  7
  row 1  11 12 13 14 15
  idx                    ↑ 1 more than the window, dropped by the next write
`)
}

func TestMask(t *testing.T) {
	d := drawing(t, parse(t, "", wrapping), props.Layout, nil)
	same(t, text(t, d, 80, 3), `
#3 b1.mask n=1
  mask of #3 over the keys of #4
  column        0  1  2  3
  row 0 keys    5  2  3  4
  query 0 (5)   #  #  #  #  attends to 4 keys: 5, 2–4

  row 1 keys   13 -2 11 12
  query 0 (13)  #  ·  #  #  attends to 3 keys: 13, 11, 12

-7 padding, # attends, · hidden
`)
	d = drawing(t, parse(t, "", `
{"op":"new","out":"r1","kind":"rotating","max_size":4}
{"op":"mask","cache":"r1","n":1}
{"op":"mask","cache":"r1","n":2,"window":3}
{"op":"update","cache":"r1","tokens":[[1]]}`), props.Layout, nil)
	same(t, text(t, d, 80, 1), `
#1 r1.mask n=1
  mask of #1 over the keys of #3
  null: every query attends to every column
  column     0
  row 0 keys 1
`)
	same(t, text(t, d, 80, 2), `
#2 r1.mask n=2 window=3
  mask of #2
  no write uses this mask
  column        0 1
  row 0 query 0 # ·  attends to 1 key
  row 0 query 1 # #  attends to 2 keys

# attends, · hidden
`)
}

// What is told apart: padding, zeros, what is evicted, taken back or not yet
// written, a region of padding, what is pending.
func TestClasses(t *testing.T) {
	d := drawing(t, parse(t, `,"step":4`, `
{"op":"new","out":"r1","kind":"rotating","max_size":8}
{"op":"update","cache":"r1","tokens":[[1,2,3]]}
{"op":"update","cache":"r1","tokens":[[4]]}
{"op":"trim","cache":"r1","n":2}
{"op":"update","cache":"r1","tokens":[[5]]}`), props.Layout, nil)
	same(t, text(t, d, 80, 3), `
#3 r1.trim n=2
  trimmed 2  offset 2  idx 2  size 2  trimmable true  buffer 7
  r1 holds
  column  0  1  2  3  4  5  6
  row 0   1  2 ~3 ~4  _  _  _
  idx           ↑ next

~7 evicted or taken back, _ not yet written
`)
	d = drawing(t, parse(t, "", `
{"op":"new","out":"b1","kind":"batch_rotating","max_size":8,"left_padding":[0,0]}
{"op":"prepare","cache":"b1","lengths":[4,2],"right_padding":[0,2]}
{"op":"update","cache":"b1","tokens":[[1,2,3,4],[11,12,-1,-2]]}
{"op":"finalize","cache":"b1"}
{"op":"new","out":"e","kind":"batch_rotating","max_size":8,"left_padding":[0]}
{"op":"update","cache":"e","tokens":[[21]]}
{"op":"extend","cache":"b1","other":"e"}`), props.Layout, nil)
	same(t, text(t, d, 80, 2), `
#2 b1.update [[1 2 3 4] [11 12 -1 -2]]
  offset [4 4]  left_padding [0 0]  idx 4  total 4  rotated false  ends [4 2]
  size 4  trimmable true  buffer 4
  b1 holds and returned
  column  0  1  2  3
  row 0   1  2  3  4
  row 1  11 12|-1 -2
  idx                 ↑ next: the buffer grows

-7 padding
`)
	same(t, text(t, d, 80, 3), `
#3 b1.finalize
  offset [4 2]  left_padding [0 2]  idx 4  total 4  rotated false  ends null
  size 4  trimmable true  buffer 4
  b1 holds
  column  0  1  2  3
  row 0   1  2  3  4
  row 1  -1 -2|11 12
  idx                 ↑ next: the buffer grows

-7 padding
`)
	same(t, text(t, d, 80, 6), `
#6 b1.extend e
  offset [4 2 1]  left_padding [0 2 3]  idx 4  total 4  rotated false  ends null
  size 4  trimmable true  buffer 8
  b1 before
  column  0  1  2  3
  row 0   1  2  3  4
  row 1  -1 -2|11 12
  idx                 ↑ next: the buffer grows
  e before
  column  0  1  2  3  4  5  6  7
  row 0  21  _  _  _  _  _  _  _
  idx        ↑ next
  b1 holds
  column  0  1  2  3  4  5  6  7
  row 0   1  2  3  4  _  _  _  _
  row 1  -1 -2|11 12  _  _  _  _
  row 2   .  .  .|21  _  _  _  _
  idx                 ↑ next

-7 padding, . zero bytes, _ not yet written
`)
	d = drawing(t, parse(t, "", `
{"op":"new","out":"r1","kind":"rotating","max_size":6,"keep":2}
{"op":"update","cache":"r1","tokens":[[1,2,3,4,5,6]]}
{"op":"update","cache":"r1","tokens":[[7]]}`), props.Layout, nil)
	same(t, text(t, d, 80, 2), `
#2 r1.update [[7]]
  offset 7  idx 3  size 6  trimmable false  buffer 6
  r1 holds and returned
  wrapped: order 1 is the oldest column
  column 0 1 2 3 4 5
  order  1 2 6 3 4 5
  row 0  1 2 7 4 5 6
  idx          ↑ next
`)
}

func TestRefused(t *testing.T) {
	d := drawing(t, parse(t, `,"semantics":"exact"`, `
{"op":"new","out":"r1","kind":"rotating","max_size":4}
{"op":"update","cache":"r1","tokens":[[1,2]]}
{"op":"trim","cache":"r1","n":3}`), props.Layout, nil)
	got := text(t, d, 80, 2)
	for _, want := range []string{"error over_trim  message ", "  r1 unchanged\n", "  row 0  1 2\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// At the failing step both sides are drawn, and what differs is marked.
func TestDifferences(t *testing.T) {
	c := parse(t, "", wrapping)
	for _, test := range []struct {
		name  string
		level props.Level
		wrong func([]corpus.Step)
		step  int
		want  string
	}{
		{"columns", props.Layout, func(steps []corpus.Step) { swap(steps[4], 0, 1) }, 4, `
#4 b1.update [[5] [13]]
  ✗ returned: not as wanted; first differing element: keys[b=0 h=0 s=0 d=0] is
    0000da3f, want 0000f8bf (little-endian)
  offset [5 3]  left_padding [-1 1]  idx 1  total 5  rotated true  ends null
  size 4  trimmable false  buffer 4
  b1 holds and returned, wanted
  wrapped: order 1 is the oldest column
  column  0  1  2  3
  order   4  1  2  3
  row 0   5  2  3  4
          ^  ^
  row 1  13|-2|11 12
          ^  ^
  idx        ↑ next
  b1 holds and returned, came
  wrapped: order 1 is the oldest column
  column  0  1  2  3
  order   4  1  2  3
  row 0   2  5  3  4
          ^  ^
  row 1  -2|13|11 12
          ^  ^
  idx        ↑ next

-7 padding
`},
		{"state", props.Layout, func(steps []corpus.Step) {
			steps[4].State = slices.Clone(steps[4].State)
			steps[4].State[2].Int = 2
		}, 4, `
#4 b1.update [[5] [13]]
  ✗ state.idx is 2, want 1
  offset [5 3]  left_padding [-1 1]  ✗ idx 1 (came: 2)  total 5  rotated true
  ends null  size 4  trimmable false  buffer 4
  b1 holds and returned
  wrapped: order 1 is the oldest column
  column  0  1  2  3
  order   4  1  2  3
  row 0   5  2  3  4
  row 1  13|-2|11 12
  idx        ↑ next

-7 padding
`},
		{"mask", props.Layout, func(steps []corpus.Step) {
			flip(steps[3].Mask, 0)
			flip(steps[3].Mask, 5)
		}, 3, `
#3 b1.mask n=1
  ✗ mask: not as wanted; got [2, 1, 1, 4], want [2, 1, 1, 4]
  mask of #3 over the keys of #4
  column        0  1  2  3
  row 0 keys    5  2  3  4
  query 0 (5)   !  #  #  #  attends to 3 keys: 2–4; wanted 5, 2–4

  row 1 keys   13 -2 11 12
  query 0 (13)  #  +  #  #  attends to 4 keys: 13, -2, 11, 12; wanted 13, 11, 12

-7 padding, # attends, + attends and must not, ! must attend and does not
`},
		{"visible", props.Visible, func(steps []corpus.Step) {
			for i := range steps {
				steps[i].Stored = nil
			}
			swap(steps[4], 0, 1) // a layout of its own
			flip(steps[3].Mask, 0)
			flip(steps[3].Mask, 2)
		}, 4, `
#4 b1.update [[5] [13]]
  ✗ visible tokens: not as wanted; row 0, query 0 (token 5), under the mask of
    #3
  wanted [2] [3] 4 5
  came   4 5
  offset [5 3]  size 4  trimmable false
  b1 holds and returned, wanted
  wrapped: order 1 is the oldest column
  column  0  1  2  3
  order   4  1  2  3
  row 0   5  2  3  4
             ^  ^
  row 1  13|-2|11 12
  idx        ↑ next
  b1 returned, came
  column  0  1  2  3
  row 0   2  5  3  4
  row 1  -2 13 11 12
  mask of #3 over the keys of #4, wanted
  column        0  1  2  3
  row 0 keys    5  2  3  4
  query 0 (5)   #  !  !  #  attends to 4 keys: 5, 2–4

  row 1 keys   13 -2 11 12
  query 0 (13)  !  ·  #  #  attends to 3 keys: 13, 11, 12
  mask of #3 over the keys of #4, came
  column        0  1  2  3
  row 0 keys    2  5  3  4
  query 0 (5)   ·  #  ·  #  attends to 2 keys: 5, 4

  row 1 keys   -2 13 11 12
  query 0 (13)  +  ·  #  #  attends to 3 keys: -2, 11, 12

-7 padding, # attends, · hidden, + attends and must not, ! must attend and does
not
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drawing(t, c, test.level, test.wrong)
			if d.Failing != test.step {
				t.Fatalf("step %d fails, want %d", d.Failing, test.step)
			}
			same(t, text(t, d, 80, test.step), test.want)
		})
	}
}

// A write that is too wide is drawn as wanted and as it came, marked by what it
// should not have brought, and its mask over the keys of either by token.
func TestMisfit(t *testing.T) {
	c := parse(t, "", `
{"op":"new","out":"c1","kind":"rotating","max_size":2}
{"op":"update","cache":"c1","tokens":[[1,2]]}
{"op":"update","cache":"c1","tokens":[[3]]}
{"op":"mask","cache":"c1","n":2}
{"op":"update","cache":"c1","tokens":[[4,5]]}`)
	d := drawing(t, c, props.Visible, func(steps []corpus.Step) {
		for i := range steps {
			steps[i].Stored = nil
		}
		for k := range steps[4].Returned {
			steps[4].Returned[k].Array = corpus.TokenArray(c.Shape, c.Fill, k, [][]int{{2, 3, 4, 5}})
		}
	})
	if d.Failing != 4 {
		t.Fatalf("step %d fails, want the write", d.Failing)
	}
	same(t, text(t, d, 80, 4), `
#4 c1.update [[4 5]]
  ✗ returned 4 columns, want 3; the mask of #3 has 3
  offset 5  size 2  trimmable false
  c1 holds and returned, wanted
  column  0  1  2  3
  row 0   3  4  5
  idx              ↑ 1 more than the window, dropped by the next write
  c1 returned, came
  column  0  1  2  3
  row 0  ~2  3  4  5
          ^
  mask of #3 over the keys of #4, wanted
  column      0 1 2 3
  row 0 keys  3 4 5
  query 0 (4) # ! ·    attends to 2 keys: 3, 4
  query 1 (5) · # !    attends to 2 keys: 4, 5
  mask of #3 over the keys of #4, came
  column      0 1 2 3
  row 0 keys  2 3 4 5
  query 0 (4) + # ·    attends to 2 keys: 2, 3
  query 1 (5) · + #    attends to 2 keys: 3, 4

~7 evicted or taken back, # attends, · hidden, + attends and must not, ! must
attend and does not
`)
}

// A property's fault is of the case as a whole: no step of it is the failing one.
func TestFaultOfProperty(t *testing.T) {
	c := parse(t, "", wrapping)
	fault := &props.Fault{Reason: "crashed", Stderr: "first\nlast"}
	f := &props.Finding{Property: "reference", Target: "port", Case: c, Run: c, What: fault.Error(), Fault: fault}
	d := New(Input{Case: c, Reference: answers(t, c), Target: "port 1.0", Level: props.Layout, Finding: f})
	if d.Failing != -1 || !strings.HasSuffix(d.Finding, "crashed; its standard error ends: last\nfirst\nlast") {
		t.Errorf("step %d fails: %q", d.Failing, d.Finding)
	}
}

// swap exchanges two columns of what a step returned and stored.
func swap(s corpus.Step, i, j int) {
	for _, planes := range [][]corpus.Plane{s.Returned, s.Stored} {
		for p, plane := range planes {
			a := plane.Array
			a.Data = bytes.Clone(a.Data)
			planes[p].Array = a
			width := a.Shape[3] * a.DType.Size()
			for row := range a.Shape[0] * a.Shape[1] {
				at := func(col int) []byte { return a.Data[(row*a.Shape[2]+col)*width:][:width] }
				was := bytes.Clone(at(i))
				copy(at(i), at(j))
				copy(at(j), was)
			}
		}
	}
}

// flip turns an element of a mask around.
func flip(m *ring.Mask, at int) { m.Data[at] = !m.Data[at] }

// Steps before the failing one are drawn as wanted; after it what came is drawn.
func TestBeforeAndAfter(t *testing.T) {
	d := drawing(t, parse(t, "", wrapping), props.Layout, func(steps []corpus.Step) { swap(steps[4], 0, 1); swap(steps[6], 0, 1) })
	for i, want := range map[int]int{1: 1, 2: 1, 4: 2, 6: 2} {
		if n := len(d.Steps[i].Tables); n != want {
			t.Errorf("step %d has %d tables, want %d", i, n, want)
		}
	}
	d = drawing(t, parse(t, "", wrapping), props.Layout, func(steps []corpus.Step) { steps[5] = corpus.Step{Unsupported: "mask"} })
	if d.Failing >= 0 { // what is not implemented is no difference
		t.Errorf("step %d fails", d.Failing)
	}
}

// A finding that is about no step stands above the steps.
func TestFault(t *testing.T) {
	c := parse(t, "", wrapping)
	d := New(Input{Case: c, Reference: answers(t, c), Target: "port", Finding: errors.New("it ended\nstandard error:\x1b[31m boom\t\x07")})
	if d.Failing >= 0 || d.Finding != "it ended\nstandard error:�[31m boom �" {
		t.Errorf("failing %d, finding %q", d.Failing, d.Finding)
	}
	var b bytes.Buffer
	if err := d.Text(&b, TextOptions{Width: 80, To: 1}); err != nil || !strings.Contains(b.String(), "✗ it ended\n✗ standard error:") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestFinding(t *testing.T) {
	c := parse(t, "", wrapping)
	got := answers(t, c)
	swap(got[4], 0, 1)
	d := New(Input{Case: c, Reference: answers(t, c), Answers: got, Level: props.Layout,
		Finding: &props.Finding{Property: "reference", Step: 4, What: "columns differ\n- 1\n+ 2"}})
	if d.Failing != 4 || d.Finding != "reference: columns differ" {
		t.Errorf("failing %d, finding %q", d.Failing, d.Finding)
	}
	if n := len(d.Steps[4].Tables); n != 2 {
		t.Errorf("%d tables at the failing step, want what was wanted and what came", n)
	}
}

// A case's own wants stand before the reference's answers.
func TestWants(t *testing.T) {
	c := parse(t, "", `
{"op":"new","out":"r1","kind":"rotating","max_size":4}
{"op":"update","cache":"r1","tokens":[[1,2]],"want":{"returned":[[2,1]],"state":{"offset":3}}}`)
	d := drawing(t, c, props.Layout, nil)
	got := text(t, d, 80, 1)
	for _, want := range []string{"offset 3  idx 2", "r1 holds\n  column 0 1\n  row 0  1 2", "r1 returned\n  column 0 1\n  row 0  2 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestColor(t *testing.T) {
	d := drawing(t, parse(t, "", wrapping), props.Layout, func(steps []corpus.Step) { swap(steps[4], 0, 1) })
	var plain, color bytes.Buffer
	for b, on := range map[*bytes.Buffer]bool{&plain: false, &color: true} {
		if err := d.Text(b, TextOptions{Width: 80, Color: on, To: 7}); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("escapes without colour")
	}
	stripped := color.String()
	for strings.Contains(stripped, "\x1b[") {
		before, rest, _ := strings.Cut(stripped, "\x1b[")
		_, after, _ := strings.Cut(rest, "m")
		stripped = before + after
	}
	if diff := cmp.Diff(plain.String(), stripped); diff != "" {
		t.Errorf("colour changes the text (-plain +colour):\n%s", diff)
	}
}

// All cases of the corpus are drawn, some of them in all three ways; no table is
// wider than the terminal, and pictures are well-formed.
func TestCorpus(t *testing.T) {
	n, rows := 0, 0
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; testing.Short() && n%8 != 0 {
			continue
		}
		d := drawing(t, f.Case, props.Layout, nil)
		sound(t, d)
		rows += inOrder(t, f.Case, d)
		if n%4 != 0 {
			continue
		}
		var page bytes.Buffer
		if err := d.Page(&page); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		for i := n % 8; i < len(d.Steps); i += 8 {
			wellFormed(t, d.SVG(i))
		}
		for _, width := range []int{40, 80, 200} {
			var b bytes.Buffer
			if err := d.Text(&b, TextOptions{Width: width, To: len(d.Steps)}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if strings.HasPrefix(line, "  row") || strings.HasPrefix(line, "  query") || strings.HasPrefix(line, "  column") {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("%s: a line of a table has %d characters, want at most %d: %s", f.Path, n, width, line)
					}
				}
			}
		}
	}
	if rows == 0 {
		t.Fatalf("no row of %d cases was looked at", n)
	}
}

// fataler is a test, or one case of a random test.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sound asserts what holds of every drawing: lines are as long as their table,
// and the write position is in it.
func sound(t fataler, d *Drawing) {
	t.Helper()
	for _, s := range d.Steps {
		for _, table := range s.Tables {
			var order []Cell
			for _, l := range table.Lines {
				if l.Kind != GapLine && len(l.Cells) != table.Columns {
					t.Fatalf("#%d %s: %s has %d cells, the table %d columns", s.Index, table.Caption, l.Label, len(l.Cells), table.Columns)
				}
				if l.Kind == OrderLine {
					order = l.Cells
				}
			}
			if table.Write < -1 || table.Write > table.Columns || order != nil && len(order) != table.Columns {
				t.Fatalf("#%d %s: write position %d of %d columns", s.Index, table.Caption, table.Write, table.Columns)
			}
		}
	}
}

func wellFormed(t fataler, svg []byte) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		switch _, err := dec.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatalf("not well-formed: %v\n%.500s", err, svg)
		}
	}
}

func TestOrder(t *testing.T) {
	info := props.ReferenceTarget().Info()
	info.Kinds = []corpus.Kind{corpus.KV, corpus.Rotating, corpus.BatchKV, corpus.BatchRotating}
	seen := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := props.Literal(rapid.Uint64().Draw(rt, "seed"), 0, info)
		seen += inOrder(rt, c, drawing(t, c, props.Layout, nil))
	})
	if seen == 0 {
		t.Error("no row was looked at")
	}
}

// inOrder asserts that the tokens of each row that are not stale, in the order
// of the drawing, are those that the token model says it holds, in their order.
// It returns how many rows it has looked at.
func inOrder(t fataler, c corpus.Case, d *Drawing) (rows int) {
	t.Helper()
	model := models.New(c.Semantics, c.Shape, c.Quant)
	for i := range c.Ops {
		op := &c.Ops[i]
		model.Apply(op)
		name := op.Cache
		if op.Out != "" {
			name = op.Out
		}
		is, ok := model.Info(name)
		if !ok || is.Lost || is.Keep > 0 || is.Slots > 0 || is.Caches > 0 {
			continue
		}
		for _, table := range d.Steps[i].Tables {
			if !strings.HasPrefix(table.Caption, name+" holds") {
				continue
			}
			for b := range is.Rows {
				k := slices.IndexFunc(table.Lines, func(l Line) bool { return l.Label == fmt.Sprintf("row %d", b) })
				if k < 0 {
					continue // left out
				}
				rows++
				if got, held := byAge(&table, &table.Lines[k]), model.Tokens(name, b); !slices.Equal(got, held) {
					t.Fatalf("#%d %s row %d: drawn in order are %v, held are %v\n%s", i, table.Caption, b, got, held, props.Listing(c, nil))
				}
			}
		}
	}
	return rows
}

// byAge are the tokens of a line, the oldest first.
func byAge(t *Table, l *Line) []int {
	ages := make([]int, t.Columns)
	for i := range ages {
		ages[i] = i
		if t.Lines[0].Kind == OrderLine {
			ages[i] = int(t.Lines[0].Cells[i].ID) - 1
		}
	}
	at := make([]int, t.Columns)
	for col, age := range ages {
		at[age] = col
	}
	var ids []int
	for _, col := range at {
		if c := l.Cells[col]; c.Class == Token {
			ids = append(ids, int(c.ID))
		}
	}
	return ids
}

func TestElide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.SliceOfN(rapid.SampledFrom([]int{matters, bounds, ends, irregular, immaterial, immaterial, immaterial}), 0, 300).Draw(t, "cost")
		budget := rapid.IntRange(1, 100).Draw(t, "budget")
		spans := elide(cost, budget)
		at, important, shown := 0, 0, 0
		for i, s := range spans {
			if s.from != at || s.to <= s.from || i > 0 && spans[i-1].hidden == s.hidden {
				t.Fatalf("spans are %v", spans)
			}
			at = s.to
			for k := s.from; k < s.to; k++ {
				if cost[k] == matters {
					important++
					if !s.hidden {
						shown++
					}
				}
			}
		}
		if at != len(cost) {
			t.Fatalf("spans end at %d of %d", at, len(cost))
		}
		if size := sizeOf(spans); size > budget && size > 3 {
			t.Fatalf("%d cells, want at most %d: %v", size, budget, spans)
		}
		if 2*important < budget && shown < important { // each may need a gap beside it
			t.Fatalf("%d of %d that matter are shown in %d: %v", shown, important, budget, spans)
		}
	})
}

func TestSummary(t *testing.T) {
	cells := func(class Class, ids ...int32) []Cell {
		out := make([]Cell, len(ids))
		for i, id := range ids {
			out[i] = Cell{ID: id, Class: class}
		}
		return out
	}
	for _, test := range []struct {
		cells []Cell
		want  string
	}{
		{cells(Token, 3, 4, 5), "3 to 5"},
		{cells(Token, 3, 5, 7), "3 to 7"},
		{cells(Token, 3, 5, 6), "3 tokens"},
		{cells(Spare, 0, 0), "2 × not yet written"},
		{cells(Attends, 0, 0), "2 attended"},
		{cells(Hidden, 0, 0), "2 hidden"},
		{append(cells(Attends, 0), cells(Hidden, 0, 0)...), "1 of 3 attended"},
		{append(cells(Token, 1), cells(Padding, -1)...), "2 columns"},
	} {
		if got := summary(test.cells); got != test.want {
			t.Errorf("%v: got %q, want %q", test.cells, got, test.want)
		}
	}
}

// Whatever a file or a child says, nothing panics, no terminal and no browser
// obeys it, and a picture stays well-formed.
func TestHostile(t *testing.T) {
	const evil = "</script><script>alert(1)</script><svg onload=alert(1)>\x1b]0;pwned\x07\u202e\" onmouseover=\"x ' & ]]> --> \x00\xff"
	info := props.ReferenceTarget().Info()
	rapid.Check(t, func(rt *rapid.T) {
		c := props.Literal(rapid.Uint64().Draw(rt, "seed"), 0, info)
		c.Notes, c.Source, c.ID, c.Link = evil, evil, evil, "javascript:"+evil
		c.Found = &corpus.Found{Property: evil, Target: evil, Version: evil}
		got := answers(t, c)
		for i := range got {
			spoil(rt, &got[i], evil)
		}
		if rapid.Bool().Draw(rt, "short") && len(got) > 0 {
			got = got[:rapid.IntRange(0, len(got)-1).Draw(rt, "answers")]
		}
		in := Input{Case: c, Reference: answers(t, c), Target: evil, Level: rapid.SampledFrom([]props.Level{props.Visible, props.Columns, props.Layout}).Draw(rt, "level"), Answers: got}
		if d := props.CompareRuns(c, in.Reference, got, in.Level); d != nil {
			in.Finding = d
		} else {
			in.Finding = errors.New(evil)
		}
		d := New(in)
		sound(rt, d)
		var b, page bytes.Buffer
		if err := d.Text(&b, TextOptions{Width: rapid.IntRange(0, 200).Draw(rt, "width"), To: len(d.Steps)}); err != nil {
			rt.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				rt.Fatalf("%U in the text", r)
			}
		}
		if err := d.Page(&page); err != nil {
			rt.Fatal(err)
		}
		for _, bad := range []string{"<script>alert", "<svg onload", "href=\"javascript", "\" onmouseover=\"x", "\x1b", "\u202e", "\x00"} {
			if strings.Contains(page.String(), bad) {
				rt.Fatalf("%q in the page", bad)
			}
		}
		svg := d.SVG(rapid.IntRange(0, len(d.Steps)-1).Draw(rt, "step"))
		wellFormed(rt, svg)
		if bytes.Contains(svg, []byte("<script")) || bytes.Contains(svg, []byte("<svg onload")) {
			rt.Fatal("markup in the picture")
		}
	})
}

// spoil makes something of an answer that no implementation should say.
func spoil(rt *rapid.T, s *corpus.Step, evil string) {
	switch rapid.IntRange(0, 12).Draw(rt, "spoil") {
	case 0:
		*s = corpus.Step{Error: "raises", Message: evil, State: s.State}
	case 1:
		*s = corpus.Step{Error: evil, Message: evil}
	case 2:
		m := &ring.Mask{B: rapid.IntRange(0, 3).Draw(rt, "b"), N: rapid.IntRange(0, 3).Draw(rt, "n"), S: rapid.IntRange(0, 9).Draw(rt, "s")}
		m.Data = make([]bool, m.B*m.N*m.S)
		s.Mask = m
	case 3:
		s.State = slices.Clone(s.State)
		for i := range s.State {
			f := &s.State[i]
			f.Int = rapid.IntRange(-1<<53, 1<<53).Draw(rt, "int")
			f.Ints = rapid.SliceOfN(rapid.IntRange(-9, 9), 0, 5).Draw(rt, "ints")
		}
	case 4:
		s.Stored, s.Returned = s.Returned, s.Stored
	case 5:
		for _, planes := range [][]corpus.Plane{s.Returned, s.Stored} {
			for i := range planes {
				planes[i].Array = ring.Array{DType: planes[i].Array.DType, Shape: [4]int{1, 1, 0, 4}}
			}
		}
	case 6:
		for _, planes := range [][]corpus.Plane{s.Returned, s.Stored} {
			for i := range planes {
				planes[i].Array.Data = bytes.Repeat([]byte{0xEE}, len(planes[i].Array.Data))
			}
		}
	case 7:
		s.Unsupported = evil
	}
}

// A page has a part of a long case, and stays small.
func TestLongCase(t *testing.T) {
	ops := []string{`{"op":"new","out":"r1","kind":"rotating","max_size":4}`}
	for i := range 1999 {
		ops = append(ops, fmt.Sprintf(`{"op":"update","cache":"r1","tokens":[[%d]]}`, i+1))
	}
	c := parse(t, "", strings.Join(ops, "\n"))
	d := drawing(t, c, props.Layout, func(steps []corpus.Step) { swap(steps[900], 0, 1) })
	var page bytes.Buffer
	if err := d.Page(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="step-900"`, "The case has 2000 operations; #700 to #1099 are drawn."} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if n := page.Len(); n > 2<<20 {
		t.Errorf("the page has %d bytes", n)
	}
}

func TestEmptyCase(t *testing.T) {
	c := corpus.Case{Name: "empty"}
	d := New(Input{Case: c})
	var b bytes.Buffer
	if err := errors.Join(d.Page(&b), d.Text(&b, TextOptions{Width: 80})); err != nil || !strings.Contains(b.String(), "The case has no operations.") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
