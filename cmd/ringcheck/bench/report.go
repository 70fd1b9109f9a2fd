package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Report is what a run has measured.
type Report struct {
	Machine Machine           `json:"machine"`
	Rounds  int               `json:"rounds"`
	Names   map[string]string `json:"names"` // of the contenders
	Table   []Result          `json:"table,omitempty"`
	Growth  []Growth          `json:"growth,omitempty"`
	Suite   *SuiteReport      `json:"suite,omitempty"`
	LeftOut []string          `json:"left_out,omitempty"` // what was not measured, and why
}

// Result is what came of one work.
type Result struct {
	Work     Work               `json:"work"`
	Times    map[string]Samples `json:"seconds"`        // of a step, by contender
	Written  float64            `json:"written"`        // bytes a step, by the plans
	Least    int                `json:"least"`          // bytes that a step must write, or read
	Held     int                `json:"held,omitempty"` // bytes of the ring's planes; 0: not looked at
	Limit    int                `json:"limit"`          // of Held
	Live     int                `json:"live,omitempty"` // bytes live on the device where the ring is alone, masks included
	PeerHeld int                `json:"peer_held,omitempty"`
	Others   float64            `json:"others,omitempty"` // part of the machine's time that other processes took meanwhile
}

// MarshalJSON adds what follows from the times.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	ratios := func(of func(string) Samples) map[string]Samples {
		m := map[string]Samples{}
		for _, c := range []string{OnDevice, PlainGo} {
			if s := of(c); len(s) > 0 {
				m[c] = s
			}
		}
		return m
	}
	return json.Marshal(struct {
		plain
		Faster map[string]Samples `json:"times_as_fast_as_peer,omitempty"`
		Share  map[string]Samples `json:"share_of_machine,omitempty"`
		Missed []string           `json:"missed,omitempty"`
	}{plain(r), ratios(r.Faster), ratios(r.Share), r.Missed()})
}

// Growth is how one work grows along an axis.
type Growth struct {
	Name    string   `json:"name"`
	Axis    string   `json:"axis"`
	Values  []int    `json:"values,omitempty"`
	Labels  []string `json:"labels"`
	Results []Result `json:"results"`
}

// Samples are measurements, one a round.
type Samples []float64

// MarshalJSON adds the median and the spread.
func (s Samples) MarshalJSON() ([]byte, error) {
	low, high := s.spread()
	return json.Marshal(struct {
		Median float64   `json:"median"`
		Low    float64   `json:"low"`
		High   float64   `json:"high"`
		Rounds []float64 `json:"rounds"`
	}{s.Median(), low, high, s})
}

// Median is the middle one, or the mean of the middle two; NaN of none.
func (s Samples) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Over divides round by round: what is s in terms of t?
func (s Samples) Over(t Samples) Samples {
	out := make(Samples, min(len(s), len(t)))
	for i := range out {
		out[i] = s[i] / t[i]
	}
	return out
}

// spread is the least and the greatest.
func (s Samples) spread() (low, high float64) { return slices.Min(s), slices.Max(s) }

// Faster is how many times the peer's speed a contender has, by round; empty
// where one of the two was not measured.
func (r *Result) Faster(contender string) Samples { return r.Times[Peer].Over(r.Times[contender]) }

// Share is what part of the machine's own speed a contender reaches, by round;
// empty where the work has no such measure.
func (r *Result) Share(contender string) Samples {
	return r.Times[r.Work.Kind.yardstick()].Over(r.Times[contender])
}

// Missed says of each bar that was missed by how much.
func (r *Result) Missed() []string {
	var list []string
	b := r.Work.Bars
	for _, c := range []struct {
		bar  float64
		got  Samples
		unit string
	}{
		{b.Faster, r.Faster(OnDevice), "times as fast as the peer"},
		{b.FasterPlain, r.Faster(PlainGo), "times as fast as the peer, without assembly"},
		{100 * b.Share, percent(r.Share(OnDevice)), "% of the machine's own " + r.Work.Kind.yardstick()},
		{100 * b.SharePlain, percent(r.Share(PlainGo)), "% of the machine's own " + r.Work.Kind.yardstick() + ", without assembly"},
	} {
		if got := c.got.Median(); got < c.bar {
			list = append(list, fmt.Sprintf("%s: %s %s; the bar is %s: %.0f%% short",
				r.Work.Name, digits(got), c.unit, digits(c.bar), 100*(1-got/c.bar)))
		}
	}
	if got := r.Times[OnDevice].Median(); b.Within > 0 && got > b.Within.Seconds() {
		list = append(list, fmt.Sprintf("%s: %s; the bar is %s: %.0f%% over",
			r.Work.Name, seconds(got), seconds(b.Within.Seconds()), 100*(got/b.Within.Seconds()-1)))
	}
	if r.Held > r.Limit {
		list = append(list, fmt.Sprintf("%s: holds %s; the limit is %s", r.Work.Name, megabytes(r.Held), megabytes(r.Limit)))
	}
	return list
}

func percent(s Samples) Samples {
	out := make(Samples, len(s))
	for i, v := range s {
		out[i] = 100 * v
	}
	return out
}

// JSON is the whole report.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// Markdown is the report as tables.
func (r *Report) Markdown() string {
	var b strings.Builder
	r.writeMachine(&b)
	r.writeTable(&b)
	for _, g := range r.Growth {
		r.writeGrowth(&b, &g)
	}
	if r.Suite != nil {
		r.Suite.write(&b)
	}
	if len(r.LeftOut) > 0 {
		b.WriteString("\nLeft out:\n\n")
		for _, line := range r.LeftOut {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	return b.String()
}

func (r *Report) writeMachine(b *strings.Builder) {
	m := &r.Machine
	name := m.CPU
	if name == "" {
		name = "a processor without a name"
	}
	fmt.Fprintf(b, "%s, %d cores, %s, %s", name, m.Cores, m.System, m.Go)
	if m.Before != "" {
		fmt.Fprintf(b, "; load averages %s before and %s after", m.Before, m.After)
	}
	fmt.Fprintf(b, ". Medians of %d interleaved rounds, least and greatest in brackets; ratios are medians of the rounds' ratios.\n", r.Rounds)
}

func (r *Report) writeTable(b *strings.Builder) {
	if len(r.Table) == 0 {
		return
	}
	s := r.Table[0].Work.Shape
	fmt.Fprintf(b, "\n%d rows, %d key and value heads, widths %d and %d, window %d, bfloat16, rings full.\n\n",
		s.Rows, s.Heads, s.KeyDim, s.ValueDim, s.Window)
	contenders := r.contenders()
	head := []string{"work"}
	for _, c := range contenders {
		head = append(head, r.Names[c])
	}
	_, withPlain := r.Names[PlainGo]
	_, withPeer := r.Names[Peer]
	if withPeer {
		head = append(head, "times as fast (bar)")
		if withPlain {
			head = append(head, "plain Go (bar)")
		}
	}
	head = append(head, "of the machine's copy or read (bar)")
	if withPlain {
		head = append(head, "plain Go (bar)")
	}
	head = append(head, "written / least", "planes held (limit)", "live in all")
	if withPeer {
		head = append(head, "peer's nbytes")
	}
	head = append(head, "others' load")
	writeRow(b, head)
	writeRule(b, len(head))
	for i := range r.Table {
		w := &r.Table[i]
		row := []string{w.Work.Name}
		for _, c := range contenders {
			row = append(row, w.Times[c].show(seconds))
		}
		bars := w.Work.Bars
		if withPeer {
			row = append(row, against(w.Faster(OnDevice), digits, bars.Faster))
			if withPlain {
				row = append(row, against(w.Faster(PlainGo), digits, bars.FasterPlain))
			}
		}
		row = append(row, against(w.Share(OnDevice), percents, bars.Share))
		if withPlain {
			row = append(row, against(w.Share(PlainGo), percents, bars.SharePlain))
		}
		row = append(row, w.overLeast(), w.held(), megabytes(w.Live))
		if withPeer {
			row = append(row, megabytes(w.PeerHeld))
		}
		others := ""
		if w.Others > 0 {
			others = percents(w.Others)
		}
		row = append(row, others)
		writeRow(b, row)
	}
	var missed []string
	for i := range r.Table {
		missed = append(missed, r.Table[i].Missed()...)
	}
	if len(missed) > 0 {
		b.WriteString("\nMissed:\n\n")
		for _, line := range missed {
			fmt.Fprintf(b, "- %s\n", line)
		}
	}
}

// contenders are those that the run had, ours first.
func (r *Report) contenders() []string {
	return slices.DeleteFunc([]string{OnDevice, PlainGo, Peer}, func(c string) bool { return r.Names[c] == "" })
}

func (r *Report) writeGrowth(b *strings.Builder, g *Growth) {
	fmt.Fprintf(b, "\n%s by %s, medians:\n\n", g.Name, g.Axis)
	writeRow(b, append([]string{g.Axis}, g.Labels...))
	writeRule(b, 1+len(g.Labels))
	for _, c := range r.contenders() {
		row := []string{r.Names[c]}
		for i := range g.Results {
			row = append(row, seconds(g.Results[i].Times[c].Median()))
		}
		writeRow(b, row)
	}
	row := []string{"written / least"}
	for i := range g.Results {
		row = append(row, g.Results[i].overLeast())
	}
	writeRow(b, row)
}

func (r *Result) overLeast() string {
	if r.Work.Kind == Attend { // it reads
		return ""
	}
	return digits(r.Written / float64(r.Least))
}

func (r *Result) held() string {
	if r.Held == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s)", megabytes(r.Held), megabytes(r.Limit))
}

// show is the median with the spread, "" of none.
func (s Samples) show(unit func(float64) string) string {
	if len(s) == 0 {
		return ""
	}
	low, high := s.spread()
	return fmt.Sprintf("%s (%s to %s)", unit(s.Median()), unit(low), unit(high))
}

// against is the median with the bar, if there is one.
func against(s Samples, unit func(float64) string, bar float64) string {
	switch {
	case len(s) == 0:
		return ""
	case bar == 0:
		return unit(s.Median())
	}
	return fmt.Sprintf("%s (%s)", unit(s.Median()), unit(bar))
}

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func writeRule(b *strings.Builder, columns int) {
	writeRow(b, append([]string{"---"}, slices.Repeat([]string{"---:"}, columns-1)...))
}

// digits is a number with three digits, or all before the point.
func digits(f float64) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f):
		return ""
	case a >= 100:
		return fmt.Sprintf("%.0f", f)
	case a >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

// seconds is a time with its unit.
func seconds(f float64) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if f >= u.of.Seconds() {
			return digits(f/u.of.Seconds()) + " " + u.name
		}
	}
	if math.IsNaN(f) {
		return ""
	}
	return digits(f*1e9) + " ns"
}

func percents(f float64) string { return fmt.Sprintf("%.0f%%", 100*f) }

// megabytes is a number of bytes, "" of none.
func megabytes(n int) string {
	if n == 0 {
		return ""
	}
	return digits(float64(n)/1e6) + " MB"
}
