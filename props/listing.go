package props

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Listing returns c as one line an operation, each with its answer where steps
// has one.
func Listing(c corpus.Case, steps []corpus.Step) string {
	var b strings.Builder
	for i, op := range c.Ops {
		fmt.Fprintf(&b, "#%d %s", i, opText(op))
		if i < len(steps) {
			b.WriteString(" → ")
			b.WriteString(answerText(steps[i]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Unanswered is the listing of a case that a target has failed to answer.
func Unanswered(c corpus.Case) string {
	return "operations (a case is answered as a whole, so it is not known which of them failed):\n" + Listing(c, nil)
}

// opText is an operation as a call: "b1.update [[1 2] [3 -1]]" or
// "x2 = b1.extract row=0".
func opText(op corpus.Op) string {
	var b strings.Builder
	arg := func(name string, v any) { fmt.Fprintf(&b, " %s=%v", name, v) }
	switch {
	case op.Out != "":
		b.WriteString(op.Out + " = ")
	case len(op.Outs) > 0:
		b.WriteString(strings.Join(op.Outs, ", ") + " = ")
	case op.As != "":
		b.WriteString(op.As + " = ")
	}
	if op.Cache != "" {
		b.WriteString(op.Cache + ".")
	}
	b.WriteString(string(op.Verb))
	if op.Kind != "" {
		b.WriteString(" " + string(op.Kind))
	}
	for _, name := range append([]string{op.Other, op.From, op.File}, op.Caches...) {
		if name != "" {
			b.WriteString(" " + name)
		}
	}
	if op.Tokens != nil {
		fmt.Fprintf(&b, " %v", op.Tokens)
	}
	switch op.Verb { // a zero that is said must be seen
	case corpus.MaskOp, corpus.Trim, corpus.Advance, corpus.ProjectedBytes:
		arg("n", op.N)
	case corpus.Extract:
		arg("row", op.Row)
	case corpus.Filter:
		arg("rows", op.Rows)
	case corpus.Write:
		arg("slot", op.Slot)
	case corpus.Attend:
		arg("queries", op.Queries)
		arg("scale", op.Scale)
	}
	if op.MaxSize != 0 {
		arg("max_size", op.MaxSize)
	}
	if op.KeepRows != nil {
		arg("keep", op.KeepRows)
	} else if op.Keep != 0 || op.Verb == corpus.Rollback {
		arg("keep", op.Keep)
	}
	if op.ChunkSize != 0 {
		arg("chunk_size", op.ChunkSize)
	}
	if op.Slots != 0 {
		arg("slots", op.Slots)
	}
	for _, list := range []struct {
		name string
		v    []int
	}{{"left_padding", op.LeftPadding}, {"lengths", op.Lengths}, {"right_padding", op.RightPadding}} {
		if list.v != nil {
			arg(list.name, list.v)
		}
	}
	if op.Window != nil {
		arg("window", *op.Window)
	}
	if op.Limit != nil {
		arg("limit", *op.Limit)
	}
	if op.RightPadded != nil {
		arg("right_padded", *op.RightPadded)
	}
	if op.Mask != nil {
		arg("mask", maskText(op.Mask))
	}
	if op.Causal {
		arg("causal", true)
	}
	if op.Preserve {
		arg("preserve_columns", true)
	}
	return b.String()
}

// answerText is an answer on one line, arrays by their extent only.
func answerText(s corpus.Step) string {
	if s.Unsupported != "" {
		return "unsupported"
	}
	var parts []string
	if s.Error != "" {
		text := "refused: " + s.Error
		if s.Message != "" {
			text += " (" + quoted(s.Message) + ")"
		}
		parts = append(parts, text)
	}
	for _, p := range []struct {
		name   string
		planes []corpus.Plane
	}{{"returned", s.Returned}, {"stored", s.Stored}} {
		if len(p.planes) > 0 {
			a := p.planes[0].Array
			parts = append(parts, fmt.Sprintf("%s %d×%d", p.name, a.Rows(), a.Columns()))
		}
	}
	if s.Mask != nil {
		parts = append(parts, "mask "+maskText(s.Mask))
	}
	if s.Trimmed != nil {
		parts = append(parts, fmt.Sprintf("trimmed %d", *s.Trimmed))
	}
	if s.Offsets != nil {
		parts = append(parts, fmt.Sprintf("offsets %v", s.Offsets))
	}
	if s.Bytes != nil {
		parts = append(parts, fmt.Sprintf("bytes %d", *s.Bytes))
	}
	if s.Attended != nil {
		parts = append(parts, fmt.Sprintf("attended %d numbers", len(s.Attended)))
	}
	if s.State != nil {
		parts = append(parts, stateText(s.State))
	}
	if len(parts) == 0 {
		return "done"
	}
	return strings.Join(parts, ", ")
}

func stateText(s corpus.State) string {
	parts := make([]string, len(s))
	for i := range s {
		parts[i] = fmt.Sprintf("%v %v", s[i].Name, fieldValue(&s[i]))
	}
	return strings.Join(parts, " ")
}

// fieldValue is what a field holds, as a plain Go value.
func fieldValue(f *corpus.Field) any {
	switch f.Kind {
	case corpus.Int:
		return f.Int
	case corpus.Bool:
		return f.Int != 0
	case corpus.Ints:
		return f.Ints
	case corpus.States:
		children := make([]string, len(f.States))
		for i, s := range f.States {
			children[i] = "{" + stateText(s) + "}"
		}
		return children
	}
	return "null"
}

func maskText(m *ring.Mask) string {
	if rows := maskRows(m); rows != nil {
		return fmt.Sprint(rows)
	}
	return "null"
}

// maskRows are a mask's rows, one string of 1 and 0 a query; nil for null.
func maskRows(m *ring.Mask) [][]string {
	if m == nil || m.N == 0 {
		return nil
	}
	rows := make([][]string, m.B)
	text := make([]byte, m.S)
	for b := range rows {
		rows[b] = make([]string, m.N)
		for q := range rows[b] {
			for s := range text {
				text[s] = '0'
				if m.At(b, q, s) {
					text[s] = '1'
				}
			}
			rows[b][q] = string(text)
		}
	}
	return rows
}

// DrawColumns draws two runs of columns, as [Tokens.IDs] gives them, under each
// other: for each row of the batch the wanted ids, the ids that came, and a ^
// under each column that differs.
func DrawColumns(want, got [][]int) string {
	var b strings.Builder
	for r := range max(len(want), len(got)) {
		var w, g []int
		if r < len(want) {
			w = want[r]
		}
		if r < len(got) {
			g = got[r]
		}
		if slices.Equal(w, g) && r < len(want) && r < len(got) {
			fmt.Fprintf(&b, "row %d equal %s\n", r, cells(w, w, 0))
			continue
		}
		label := fmt.Sprintf("row %d ", r)
		for line, name := range []string{"want  ", "got   ", "      "} {
			b.WriteString(strings.TrimRight(label+name+cells(w, g, line), " ") + "\n")
			label = strings.Repeat(" ", len(label))
		}
	}
	return b.String()
}

// cells lays out one line of a drawing: 0 the first list, 1 the second, 2 the
// marks, all in columns as wide as the wider entry.
func cells(w, g []int, line int) string {
	var b strings.Builder
	for s := range max(len(w), len(g)) {
		texts := [3]string{cell(w, s), cell(g, s), ""}
		if texts[0] != texts[1] {
			texts[2] = "^"
		}
		fmt.Fprintf(&b, "%*s ", max(len(texts[0]), len(texts[1])), texts[line])
	}
	return strings.TrimSuffix(b.String(), " ")
}

// cell is one column's id: "?" for unknown bytes, "." for zero bytes, "" where
// the run has ended.
func cell(ids []int, s int) string {
	switch {
	case s >= len(ids):
		return ""
	case ids[s] == Unknown:
		return "?"
	case ids[s] == 0:
		return "."
	}
	return strconv.Itoa(ids[s])
}
