package draw

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
)

const (
	wholeColumns = 48  // columns of the widest table that is drawn whole
	pageColumns  = 26  // columns drawn of a wider one
	pageSteps    = 400 // steps drawn of a case
	stripRuns    = 500 // runs of an overview; more would show nothing
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageData is what page.html shows.
type pageData struct {
	*Drawing
	Steps     []pageStep
	Cut       string // says which steps are left out
	Last      int    // the last place in Steps
	Start     int    // the place that is shown first
	FailingAt int    // the failing step's place; -1 for none
	Legend    []swatch

	assets
}

// assets are the style and the script of a page, and their hashes: a browser
// takes no others, whatever else may stand in the page.
type assets struct {
	Style                 template.CSS
	Script                template.JS
	StyleHash, ScriptHash string
}

func newAssets(style, script string) assets {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	return assets{template.CSS(style), template.JS(script), hash(style), hash(script)}
}

type swatch struct{ Classes, Text, Says string }

func swatches(tables []Table) []swatch {
	var out []swatch
	for _, c := range legendOf(tables) {
		out = append(out, swatch{c.Classes(), c.Text(), c.legend()})
	}
	return out
}

// pageStep is a step with its tables laid out.
type pageStep struct {
	*Step
	Figures []figure
}

// figure is a table as rows of cells, with gaps for what is left out.
type figure struct {
	Title, Side string
	Notes       []string
	Head        []string
	Lines       []figureLine
	Tails       bool
	Strips      []strip

	Arrow, Rest int // the place of the write position, -1 for none; the cells from there on
	Before      []struct{}
	Write       int
	Next        string
}

type figureLine struct {
	Kind, Label, Tail string
	Cells             []figureCell
}

type figureCell struct{ Classes, Text, Says, Title string }

// strip is an overview of a line that is too long to be drawn whole.
type strip struct {
	Label   string
	Columns int
	Runs    []stripRun
}

type stripRun struct {
	From, Width int
	Classes     string
}

// Page writes d as one web page that needs nothing else: it steps with mouse
// and keyboard, and without scripts or on paper shows all steps. Of a long case
// it has the steps around the failing one, or the last. An error is of w.
func (d *Drawing) Page(w io.Writer) error {
	first, end := 0, len(d.Steps)
	if len(d.Steps) > pageSteps {
		at := d.Failing
		if at < 0 {
			at = len(d.Steps) - 1
		}
		first = max(0, min(at-pageSteps/2, len(d.Steps)-pageSteps))
		end = first + pageSteps
	}
	p := pageData{Drawing: d, Last: end - first - 1, FailingAt: -1}
	if end-first < len(d.Steps) {
		p.Cut = fmt.Sprintf("The case has %d operations; #%d to #%d are drawn.", len(d.Steps), first, end-1)
	}
	if d.Failing >= 0 {
		p.FailingAt = d.Failing - first
		p.Start = p.FailingAt
	}
	var tables []Table
	for i := first; i < end; i++ {
		s := &d.Steps[i]
		p.Steps = append(p.Steps, pageStep{s, figures(s.Tables)})
		tables = append(tables, s.Tables...)
	}
	p.Legend = swatches(tables)
	p.assets = newAssets(pageLooks+pageStyle, pageScript)
	return pageTemplate.Execute(w, &p)
}

// figures lays tables out for a page.
func figures(tables []Table) []figure {
	var out []figure
	for _, group := range groups(tables) {
		budget := pageColumns
		if group[0].Columns <= wholeColumns {
			budget = wholeColumns
		}
		spans := groupSpans(group, budget)
		for i := range group {
			out = append(out, figureOf(&group[i], spans))
		}
	}
	return out
}

func figureOf(t *Table, spans []span) figure {
	f := figure{Title: t.title(), Side: t.Side.String(), Notes: t.Notes, Arrow: -1}
	each(spans, func(col int, s span) {
		if s.hidden {
			f.Head = append(f.Head, "…")
		} else {
			f.Head = append(f.Head, strconv.Itoa(col))
		}
	})
	for i := range t.Lines {
		l := &t.Lines[i]
		line := figureLine{Kind: lineNames[l.Kind], Label: l.Label, Tail: l.Tail}
		f.Tails = f.Tails || l.Tail != ""
		if l.Kind != GapLine {
			each(spans, func(col int, s span) {
				if s.hidden {
					text := summary(l.run(s))
					line.Cells = append(line.Cells, figureCell{Classes: "gap", Text: "…", Says: text, Title: text})
				} else {
					line.Cells = append(line.Cells, l.figureCell(col))
				}
			})
		}
		f.Lines = append(f.Lines, line)
		if (l.Kind == RowLine || l.Kind == KeyLine) && t.Columns > wholeColumns {
			if s := stripOf(l, t.Columns); len(s.Runs) <= stripRuns {
				f.Strips = append(f.Strips, s)
			}
		}
	}
	if t.Write >= 0 {
		f.Arrow = position(spans, t.Write)
		f.Before = make([]struct{}, f.Arrow)
		f.Rest = len(f.Head) - f.Arrow + 1
		f.Write, f.Next = t.Write, t.Next
	}
	return f
}

var lineNames = [...]string{OrderLine: "ages", RowLine: "row", KeyLine: "keys", QueryLine: "query", GapLine: "gapline"}

func (l *Line) figureCell(col int) figureCell {
	c := l.at(col)
	cell := figureCell{Classes: c.Classes(), Text: c.Text()}
	if col > 0 && (c.Mark^l.at(col-1).Mark)&(Left|Right) != 0 {
		cell.Classes += " bar"
	}
	switch c.Class { // the others say it in the line's own words
	case Padding, Zeros, Stale, Spare, Unknown, Extra, Missing:
		cell.Says = c.Says()
	}
	for _, m := range []struct {
		mark Mark
		says string
	}{{Fresh, "new"}, {Differs, "differs"}} {
		if c.Mark&m.mark != 0 {
			cell.Says = strings.TrimPrefix(cell.Says+", "+m.says, ", ")
		}
	}
	return cell
}

// stripOf is a line in runs of one look.
func stripOf(l *Line, columns int) strip {
	s := strip{Label: l.Label, Columns: columns}
	for col := range columns {
		classes := l.at(col).Classes()
		if n := len(s.Runs); n > 0 && s.Runs[n-1].Classes == classes {
			s.Runs[n-1].Width++
		} else {
			s.Runs = append(s.Runs, stripRun{col, 1, classes})
		}
	}
	return s
}
