package draw

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// TextOptions say how a Drawing is written as text.
type TextOptions struct {
	Width int  // columns of the terminal; at least 40 are used
	Color bool // with the escapes of ANSI terminals
	// From and To are the steps written, To not among them.
	From, To int
}

// Text writes steps of d for a terminal or a pipe. An error is of w.
func (d *Drawing) Text(w io.Writer, o TextOptions) error {
	t := &texter{Writer: bufio.NewWriter(w), width: max(40, o.Width), color: o.Color}
	t.line(bold, d.Name)
	if d.Link != "" {
		t.fold("", "  link: ", d.Link)
	}
	for _, f := range d.About {
		t.fold("", "  "+f.Name+": ", f.Want)
	}
	if d.Failing < 0 && d.Finding != "" {
		for line := range strings.Lines(d.Finding) {
			t.line(failed, "✗ "+strings.TrimSuffix(line, "\n"))
		}
	}
	var tables []Table
	for i := o.From; i < o.To && i < len(d.Steps); i++ {
		t.step(&d.Steps[i])
		tables = append(tables, d.Steps[i].Tables...)
	}
	t.legend(tables)
	return t.Flush()
}

// The styles of a terminal.
const (
	bold   = "1"
	faint  = "2"
	failed = "1;31"
	diff   = "1;7;31"
	fresh  = "1;32"
	pad    = "33"
	odd    = "35"
)

// texter writes text of a width. Errors stay with its Writer until Flush.
type texter struct {
	*bufio.Writer
	width int
	color bool
}

// paint gives text a style.
func (t *texter) paint(style, text string) string {
	if !t.color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// line writes one line, cut to twice the width: the terminal folds it once.
func (t *texter) line(style, text string) {
	if r := []rune(text); len(r) > 2*t.width {
		text = string(r[:2*t.width-2]) + " …"
	}
	t.WriteString(t.paint(style, text) + "\n")
}

// fold writes words, folded at the width and indented as far as the label.
func (t *texter) fold(style, label, text string) {
	indent := utf8.RuneCountInString(label)
	at := indent
	t.WriteString(t.paint(cmp.Or(style, faint), label))
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > t.width:
			t.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			t.WriteString(" ")
			at++
		}
		t.WriteString(t.paint(style, word))
		at += n
	}
	t.WriteString("\n")
}

func (t *texter) step(s *Step) {
	t.WriteString("\n")
	t.line(bold, fmt.Sprintf("#%d %s", s.Index, s.Call))
	if s.Verdict != "" {
		t.fold(failed, "  ✗ ", s.Verdict)
	}
	for _, d := range s.Diffs {
		t.fold("", "  wanted ", bracketed(d.Want))
		t.fold("", "  came   ", bracketed(d.Got))
	}
	for _, n := range s.Notes {
		t.fold("", "  ", n)
	}
	t.facts(s.Facts)
	for _, g := range groups(s.Tables) {
		t.tables(g)
	}
}

// facts writes names and values, as many on a line as there is room for.
func (t *texter) facts(facts []Fact) {
	at := 0
	for _, f := range facts {
		text := f.text()
		n := utf8.RuneCountInString(text)
		switch {
		case at == 0:
			t.WriteString("  ")
			at = 2
		case at+2+n > t.width:
			t.WriteString("\n  ")
			at = 2
		default:
			t.WriteString("  ")
			at += 2
		}
		at += n
		switch {
		case f.Differs:
			text = t.paint(failed, text)
		case strings.HasPrefix(text, f.Name):
			text = t.paint(faint, f.Name) + strings.TrimPrefix(text, f.Name)
		}
		t.WriteString(text)
	}
	if at > 0 {
		t.WriteString("\n")
	}
}

// plain is a cell in text: what tells classes apart must do so without colour.
func (c Cell) plain() string {
	switch c.Class {
	case Stale:
		return "~" + c.Text()
	case Zeros:
		return "."
	case Spare:
		return "_"
	case Attends:
		return "#"
	case Hidden:
		return "·"
	}
	return c.Text()
}

func (c Cell) style() string {
	switch {
	case c.Mark&Differs != 0:
		return diff
	case c.Mark&Fresh != 0 && c.Class == Token:
		return fresh
	}
	switch c.Class {
	case Padding:
		return pad
	case Zeros, Stale, Spare, Hidden, Order:
		return faint
	case Unknown:
		return odd
	}
	return ""
}

// tables draws a table, or the two sides of one, with the same columns.
func (t *texter) tables(group []Table) {
	label, cell := len("column"), 1
	for _, table := range group {
		for _, l := range table.Lines {
			label = max(label, utf8.RuneCountInString(l.Label))
			for _, c := range l.Cells {
				cell = max(cell, utf8.RuneCountInString(c.plain()))
			}
		}
		cell = max(cell, len(fmt.Sprint(max(0, table.Columns-1))))
	}
	const margin = "  "
	spans := groupSpans(group, (t.width-len(margin)-label-1)/(cell+1))
	row := func(name string, text string) {
		if text = strings.TrimRight(text, " "); text != "" {
			name = fmt.Sprintf("%-*s", label, name)
		}
		t.WriteString(margin + t.paint(faint, name) + text + "\n")
	}
	for _, table := range group {
		t.line("", "  "+table.title())
		for _, n := range table.Notes {
			t.fold("", "  ", n)
		}
		if len(table.Lines) == 0 || table.Columns == 0 {
			continue
		}
		row("column", t.columns(spans, cell))
		for k, l := range table.Lines {
			if l.Kind == GapLine {
				row(l.Label, "")
				continue
			}
			text, marks := t.cells(&l, spans, cell)
			if used := (cell+1)*sizeOf(spans) + 2 + len(margin) + label; l.Tail != "" && used+utf8.RuneCountInString(l.Tail) <= t.width {
				text += "  " + t.paint(faint, l.Tail)
			}
			if l.Kind == KeyLine && k > 0 {
				t.WriteString("\n")
			}
			row(l.Label, text)
			if l.Kind == RowLine && strings.TrimSpace(marks) != "" {
				row("", marks)
			}
		}
		if table.Write >= 0 {
			arrow := strings.Repeat(" ", position(spans, table.Write)*(cell+1)+cell) + "↑"
			if at := utf8.RuneCountInString(arrow); len(margin)+label+at+1+len(table.Next) <= t.width {
				arrow += " " + t.paint(faint, table.Next)
			} else {
				arrow = strings.Repeat(" ", max(0, at-2-len(table.Next))) + t.paint(faint, table.Next) + " ↑"
			}
			row("idx", arrow)
		}
	}
}

// columns are the numbers of the columns.
func (t *texter) columns(spans []span, cell int) string {
	var b strings.Builder
	each(spans, func(col int, s span) {
		text := "…"
		if !s.hidden {
			text = fmt.Sprint(col)
		}
		fmt.Fprintf(&b, " %*s", cell, text)
	})
	return t.paint(faint, b.String())
}

// cells draws a line, and marks under what differs. A bar stands where a region
// of padding begins or ends.
func (t *texter) cells(l *Line, spans []span, cell int) (text, marks string) {
	var b, m strings.Builder
	each(spans, func(col int, s span) {
		if s.hidden {
			fmt.Fprintf(&b, " %*s", cell, "…")
			fmt.Fprintf(&m, " %*s", cell, "")
			return
		}
		c := l.at(col)
		bar, mark := " ", ""
		if col > 0 && (c.Mark^l.at(col-1).Mark)&(Left|Right) != 0 {
			bar = "|"
		}
		if c.Mark&Differs != 0 {
			mark = "^"
		}
		word := c.plain()
		b.WriteString(bar + strings.Repeat(" ", cell-utf8.RuneCountInString(word)) + t.paint(c.style(), word))
		fmt.Fprintf(&m, " %*s", cell, mark)
	})
	return b.String(), t.paint(failed, strings.TrimRight(m.String(), " "))
}

// legend explains what tables show.
func (t *texter) legend(tables []Table) {
	var parts []string
	for _, c := range legendOf(tables) {
		if says := c.Says(); says != "" {
			parts = append(parts, c.plain()+" "+says)
		}
	}
	if len(parts) > 0 {
		t.WriteString("\n")
		t.fold("", "", strings.Join(parts, ", "))
	}
}
