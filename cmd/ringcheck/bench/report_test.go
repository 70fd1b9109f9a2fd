package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fixed is a report of numbers that were made up.
func fixed() *Report {
	s := usual(false)
	merge := Result{
		Work: Work{"merge of 8 full rings", Merge, s, Bars{Faster: 15, FasterPlain: 8, Share: 0.8}},
		Times: map[string]Samples{
			OnDevice: {0.002, 0.0024, 0.0022}, PlainGo: {0.004, 0.005, 0.0045}, Peer: {0.06, 0.06, 0.0704}, CopyMemory: {0.0015, 0.0018, 0.0018},
		},
		Written: 33554432, Least: 33554432, Held: 33554432, Limit: 50331648, PeerHeld: 33554432,
	}
	decode := Result{
		Work:    Work{"decode step, mask included", Decode, s, Bars{Faster: 40, FasterPlain: 12, Within: 6 * time.Microsecond}},
		Times:   map[string]Samples{OnDevice: {6e-6, 7.5e-6, 6.6e-6}, PlainGo: {12e-6, 15e-6, 12e-6}, Peer: {150e-6, 303e-6, 330e-6}},
		Written: 32768, Least: 32768, Held: 50331648, Limit: 50364416, Live: 50400000, PeerHeld: 33554432, Others: 0.125,
	}
	block := Growth{Name: "block", Axis: "block", Values: []int{1, 512}, Labels: []string{"1", "512"}}
	for i, n := range block.Values {
		b := decode
		b.Work = Work{Name: "block", Kind: Block, Shape: s}
		b.Work.Shape.Block = n
		b.Least = b.Work.least()
		b.Written = float64(b.Least * (i + 1))
		block.Results = append(block.Results, b)
	}
	model := Growth{Name: "decode step", Axis: "model", Labels: []string{"a model"}, Results: []Result{decode}}
	return &Report{
		Machine: Machine{CPU: "A Processor", Cores: 2, System: "linux/amd64", Go: "go1.26", Before: "0.10 0.20 0.30", After: "1.00 0.90 0.80"},
		Rounds:  3,
		Names:   map[string]string{OnDevice: "cpu (avx2)", PlainGo: "cpu (plain Go)", Peer: "mlx-lm 9.9"},
		Table:   []Result{decode, merge},
		Growth:  []Growth{block, model},
		Suite: &SuiteReport{Contenders: []SuiteSpeed{
			{Name: "reference", Cores: 1, PerSecond: Samples{100000, 120000, 110000}},
			{Name: hypothesis, Cores: 1, PerSecond: Samples{1000, 1000, 1000}},
		}},
		LeftOut: []string{"the moon: it is too far"},
	}
}

const wantMarkdown = `A Processor, 2 cores, linux/amd64, go1.26; load averages 0.10 0.20 0.30 before and 1.00 0.90 0.80 after. Medians of 3 interleaved rounds, least and greatest in brackets; ratios are medians of the rounds' ratios.

8 rows, 8 key and value heads, widths 128 and 128, window 1024, bfloat16, rings full.

| work | cpu (avx2) | cpu (plain Go) | mlx-lm 9.9 | times as fast (bar) | plain Go (bar) | of the machine's copy or read (bar) | plain Go (bar) | written / least | planes held (limit) | live in all | peer's nbytes | others' load |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| decode step, mask included | 6.60 us (6.00 us to 7.50 us) | 12.0 us (12.0 us to 15.0 us) | 303 us (150 us to 330 us) | 40.4 (40.0) | 20.2 (12.0) |  |  | 1.00 | 50.3 MB (50.4 MB) | 50.4 MB | 33.6 MB | 12% |
| merge of 8 full rings | 2.20 ms (2.00 ms to 2.40 ms) | 4.50 ms (4.00 ms to 5.00 ms) | 60.0 ms (60.0 ms to 70.4 ms) | 30.0 (15.0) | 15.0 (8.00) | 75% (80%) | 38% | 1.00 | 33.6 MB (50.3 MB) |  | 33.6 MB |  |

Missed:

- decode step, mask included: 6.60 us; the bar is 6.00 us: 10% over
- merge of 8 full rings: 75.0 % of the machine's own copy; the bar is 80.0: 6% short

block by block, medians:

| block | 1 | 512 |
| --- | ---: | ---: |
| cpu (avx2) | 6.60 us | 6.60 us |
| cpu (plain Go) | 12.0 us | 12.0 us |
| mlx-lm 9.9 | 303 us | 303 us |
| written / least | 1.00 | 2.00 |

decode step by model, medians:

| model | a model |
| --- | ---: |
| cpu (avx2) | 6.60 us |
| cpu (plain Go) | 12.0 us |
| mlx-lm 9.9 | 303 us |
| written / least | 1.00 |

Operations of generated cases that the stepwise properties check a second; windows of 8, two rows, two heads, widths of 8:

| implementation judged | cores | operations a second | times Hypothesis |
| --- | ---: | ---: | ---: |
| reference | 1 | 110000 (100000 to 120000) | 110 |
| hypothesis | 1 | 1000 (1000 to 1000) | 1.00 |

Left out:

- the moon: it is too far
`

func TestMarkdown(t *testing.T) {
	if diff := cmp.Diff(wantMarkdown, fixed().Markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMarkdownOfLess has no peer, no plain Go and no yardstick.
func TestMarkdownOfLess(t *testing.T) {
	r := fixed()
	r.Machine = Machine{Cores: 1, System: "plan9/arm", Go: "go1.26"}
	r.Names = map[string]string{OnDevice: "cuda"}
	r.Table, r.Growth, r.Suite, r.LeftOut = r.Table[:1], nil, nil, nil
	r.Table[0].Times = map[string]Samples{OnDevice: {1e-7, 2.5, 2e-4}}
	r.Table[0].Work.Bars = Bars{Faster: 40}
	r.Table[0].Held = 60e6
	want := `a processor without a name, 1 cores, plan9/arm, go1.26. Medians of 3 interleaved rounds, least and greatest in brackets; ratios are medians of the rounds' ratios.

8 rows, 8 key and value heads, widths 128 and 128, window 1024, bfloat16, rings full.

| work | cuda | of the machine's copy or read (bar) | written / least | planes held (limit) | live in all | others' load |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| decode step, mask included | 200 us (100 ns to 2.50 s) |  | 1.00 | 60.0 MB (50.4 MB) | 50.4 MB | 12% |

Missed:

- decode step, mask included: holds 60.0 MB; the limit is 50.4 MB
`
	if diff := cmp.Diff(want, r.Markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	text, err := fixed().JSON()
	if err != nil {
		t.Fatal(err)
	}
	type samples struct {
		Median, Low, High float64
		Rounds            []float64
	}
	var got struct {
		Machine struct{ Cores int }
		Rounds  int
		Names   map[string]string
		Table   []struct {
			Work struct {
				Name, Kind string
				Shape      Shape
				Bars       map[string]float64
			}
			Seconds map[string]samples
			Faster  map[string]samples `json:"times_as_fast_as_peer"`
			Share   map[string]samples `json:"share_of_machine"`
			Missed  []string
			Held    int
		}
		Growth []struct {
			Axis    string
			Results []struct{ Written float64 }
		}
		Suite   struct{ Contenders []struct{ Name string } }
		LeftOut []string `json:"left_out"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	merge := got.Table[1]
	if merge.Work.Kind != "merge" || merge.Work.Shape != usual(false) || merge.Work.Bars["faster_plain"] != 8 || merge.Held != 33554432 {
		t.Errorf("the work is %+v", merge.Work)
	}
	if diff := cmp.Diff(samples{0.0022, 0.002, 0.0024, []float64{0.002, 0.0024, 0.0022}}, merge.Seconds[OnDevice]); diff != "" {
		t.Errorf("seconds, -want +got:\n%s", diff)
	}
	if f := merge.Faster[OnDevice]; f.Median != 30 || f.Low != 25 || f.High != 32 {
		t.Errorf("times as fast: %+v", f)
	}
	if f := merge.Share[PlainGo]; f.Median != 0.375 || len(merge.Missed) != 1 {
		t.Errorf("share: %+v, missed %q", f, merge.Missed)
	}
	if got.Machine.Cores != 2 || got.Rounds != 3 || got.Names[Peer] != "mlx-lm 9.9" || len(got.Table) != 2 || len(got.LeftOut) != 1 ||
		got.Growth[0].Axis != "block" || got.Growth[0].Results[1].Written == 0 || got.Suite.Contenders[1].Name != hypothesis {
		t.Errorf("%+v", got)
	}
}

func TestSamples(t *testing.T) {
	s := Samples{3, 1, 2}
	if s.Median() != 2 || s[0] != 3 {
		t.Errorf("the median of %v is %v", s, s.Median())
	}
	if m := (Samples{4, 1, 3, 2}).Median(); m != 2.5 {
		t.Errorf("the median of four is %v", m)
	}
	if m := (Samples{}).Median(); !math.IsNaN(m) {
		t.Errorf("the median of none is %v", m)
	}
	// The median of ratios, not the ratio of medians.
	a, b := Samples{10, 100, 30}, Samples{1, 50, 10}
	if got := a.Over(b).Median(); got != 3 {
		t.Errorf("the ratio is %v", got)
	}
	if got := a.Over(nil); len(got) != 0 {
		t.Errorf("over nothing it is %v", got)
	}
}

func TestPlots(t *testing.T) {
	r := fixed()
	attend := r.Growth[0]
	attend.Name, attend.Results = "attention", slices.Clone(attend.Results)
	for i := range attend.Results {
		attend.Results[i].Work.Kind = Attend
	}
	r.Growth = append(r.Growth, attend)
	files, err := r.Plots()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bytes-by-block.png", "bytes-by-block.svg", "time-by-block.png", "time-by-block.svg"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Fatalf("files %q, want %q", got, want)
	}
	for _, name := range want {
		if strings.HasSuffix(name, ".png") {
			picture, err := png.Decode(bytes.NewReader(files[name]))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if b := picture.Bounds(); b.Dx() < 400 || b.Dy() < 300 {
				t.Errorf("%s measures %v", name, b)
			}
		}
	}
	for name, want := range map[string][]string{
		"time-by-block.svg":  {"block", "attention", "cpu (avx2)", "cpu (plain Go)", "mlx-lm 9.9", "time of a step", "1 us", "100 us", "1 ms", "1", "512"},
		"bytes-by-block.svg": {"block", "by the plans", "least possible", "bytes written a step", "10 kB", "10 MB", "64"},
	} {
		texts := svgTexts(t, files[name])
		for _, w := range want {
			if !slices.Contains(texts, w) {
				t.Errorf("%s: no text %q among %q", name, w, texts)
			}
		}
		if strings.HasPrefix(name, "bytes") && slices.Contains(texts, "attention") {
			t.Errorf("%s draws what attention writes", name)
		}
	}
	r.Growth = nil
	if files, err := r.Plots(); err != nil || len(files) != 0 {
		t.Errorf("without growth: %d files, %v", len(files), err)
	}
}

// svgTexts are the texts of a picture, which must be well-formed.
func svgTexts(t *testing.T, svg []byte) []string {
	t.Helper()
	var texts []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, strings.TrimSpace(string(text)))
		}
	}
}
