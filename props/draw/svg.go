package draw

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Measures of a picture, in its units: pixels where it is not scaled.
const (
	pictureColumns = 32 // columns drawn of a table
	glyph          = 7.3
	cellHeight     = 24
	lineHeight     = 20
	border         = 16
	pictureWords   = 110 // characters of a line of text
)

// SVG returns step i of d as a picture that stands alone. It follows a reader's
// choice of light or dark. i must be a step of d.
func (d *Drawing) SVG(i int) []byte {
	p := &picture{y: border}
	p.step(d, i)
	name := html.EscapeString(fmt.Sprintf("%s, step %d: %s", d.Name, d.Steps[i].Index, d.Steps[i].Call))
	var b strings.Builder
	w, h := p.width+border, p.y+border
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<style>%s</style>\n", name, pictureStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%.0f" height="%.0f"/>`+"\n", w, h)
	b.WriteString(p.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// picture is an SVG image in the making.
type picture struct {
	body     strings.Builder
	y, width float64
}

func (p *picture) text(x float64, class, text string) {
	fmt.Fprintf(&p.body, `<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, p.y+14, class, html.EscapeString(text))
	p.width = max(p.width, x+float64(utf8.RuneCountInString(text))*glyph)
}

// line writes text below what there is, folded.
func (p *picture) line(class, text string) {
	for _, l := range foldWords(text, pictureWords) {
		p.text(border, class, l)
		p.y += lineHeight
	}
}

// foldWords breaks text into lines of at most n characters, where it has
// spaces.
func foldWords(text string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (p *picture) step(d *Drawing, i int) {
	s := &d.Steps[i]
	p.line("call", fmt.Sprintf("#%d %s", s.Index, s.Call))
	if s.Verdict != "" {
		p.line("verdict", "✗ "+s.Verdict)
	}
	for _, diff := range s.Diffs {
		p.line("words", "wanted "+bracketed(diff.Want))
		p.line("words", "came "+bracketed(diff.Got))
	}
	var facts []string
	for _, f := range s.Facts {
		facts = append(facts, f.text())
	}
	if len(facts) > 0 {
		p.line("facts", strings.Join(facts, " · "))
	}
	for _, n := range s.Notes {
		p.line("note", n)
	}
	for _, g := range groups(s.Tables) {
		p.tables(g)
	}
	p.legend(s.Tables)
}

// tables draws a table, or the two sides of one, with the same columns.
func (p *picture) tables(group []Table) {
	spans := groupSpans(group, pictureColumns)
	label, chars := 6, 2
	for _, t := range group {
		for _, l := range t.Lines {
			label = max(label, utf8.RuneCountInString(l.Label))
			for _, c := range l.Cells {
				chars = max(chars, len(c.Text()))
			}
		}
		chars = max(chars, len(fmt.Sprint(t.Columns)))
	}
	left, cell := border+float64(label)*glyph+10, float64(chars)*glyph+10
	x := func(at int) float64 { return left + float64(at)*cell }
	for _, t := range group {
		p.y += 8
		p.line("caption", t.title())
		for _, n := range t.Notes {
			p.line("note", n)
		}
		if len(t.Lines) == 0 {
			continue
		}
		at := 0
		each(spans, func(col int, s span) {
			text := "…"
			if !s.hidden {
				text = fmt.Sprint(col)
			}
			fmt.Fprintf(&p.body, `<text x="%.1f" y="%.1f" class="number">%s</text>`, x(at)+cell/2, p.y+14, text)
			at++
		})
		p.text(border, "label", "column")
		p.y += lineHeight
		p.width = max(p.width, x(at))
		for _, l := range t.Lines {
			p.tableLine(&l, spans, x, cell)
		}
		if t.Write >= 0 {
			p.text(border, "label", "idx")
			fmt.Fprintf(&p.body, `<path class="arrow" d="M%.1f %.1f l5 9 h-10 z"/>`, x(position(spans, t.Write))+cell/2, p.y+4)
			p.text(x(position(spans, t.Write))+cell/2+10, "note", t.Next)
			p.y += lineHeight
		}
	}
}

func (p *picture) tableLine(l *Line, spans []span, x func(int) float64, cell float64) {
	p.y += 2
	defer func() { p.y += cellHeight }()
	p.text(border, "label", l.Label)
	if l.Kind == GapLine {
		return
	}
	at := 0
	each(spans, func(col int, s span) {
		left := x(at)
		at++
		if s.hidden {
			fmt.Fprintf(&p.body, `<g><title>%s</title><text x="%.1f" y="%.1f" class="number">…</text></g>`, html.EscapeString(summary(l.run(s))), left+cell/2, p.y+14)
			return
		}
		c := l.at(col)
		if c.Class == Nothing && c.Mark&Differs == 0 {
			return
		}
		fmt.Fprintf(&p.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="3" class="%s"/>`, left+1, p.y-2, cell-2, cellHeight-2, c.Classes())
		if text := c.Text(); text != "" {
			fmt.Fprintf(&p.body, `<text x="%.1f" y="%.1f" class="in %s">%s</text>`, left+cell/2, p.y+14, c.Classes(), text)
		}
		if col > 0 && (c.Mark^l.at(col-1).Mark)&(Left|Right) != 0 {
			fmt.Fprintf(&p.body, `<path class="bar" d="M%.1f %.1f v%d"/>`, left, p.y-4, cellHeight+2)
		}
	})
	p.body.WriteByte('\n')
	if l.Tail != "" && len(l.Tail) < 60 {
		p.text(x(at)+8, "note", l.Tail)
	}
}

// legend explains the classes in tables.
func (p *picture) legend(tables []Table) {
	p.y += 8
	at := float64(border)
	for _, c := range legendOf(tables) {
		fmt.Fprintf(&p.body, `<rect x="%.1f" y="%.1f" width="24" height="16" rx="3" class="%s"/>`, at, p.y+2, c.Classes())
		if c.Class != Spare && c.Class != Hidden {
			fmt.Fprintf(&p.body, `<text x="%.1f" y="%.1f" class="in %s">%s</text>`, at+12, p.y+14, c.Classes(), c.Text())
		}
		p.text(at+30, "note", c.legend())
		at += 44 + float64(utf8.RuneCountInString(c.legend()))*glyph
		if at > pictureWords*glyph {
			at = border
			p.y += lineHeight
		}
	}
	if at > border {
		p.y += lineHeight
	}
}
