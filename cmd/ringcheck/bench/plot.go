package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plots draws how the work grows: time against each axis that has numbers, and
// bytes written against the least possible, a panel for each work. The keys are
// names of files, such as "time-by-window.svg".
func (r *Report) Plots() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, axis := range []string{"window", "rows", "block"} {
		var times, written []*plot.Plot
		for _, g := range r.Growth {
			if g.Axis != axis {
				continue
			}
			p, q := panel(g.Name, axis, "time of a step", shortSeconds), panel(g.Name, axis, "bytes written a step", shortBytes)
			for i, c := range r.contenders() {
				if err := addLine(p, r.Names[c], i, g.points(func(r *Result) Samples { return r.Times[c] })); err != nil {
					return nil, err
				}
			}
			finish(p)
			times = append(times, p)
			if g.Results[0].Work.Kind == Attend { // it reads
				continue
			}
			for i, line := range []struct {
				name  string
				bytes func(*Result) float64
			}{
				{"by the plans", func(r *Result) float64 { return r.Written }},
				{"least possible", func(r *Result) float64 { return float64(r.Least) }},
			} {
				if err := addLine(q, line.name, i, g.points(func(r *Result) Samples { return Samples{line.bytes(r)} })); err != nil {
					return nil, err
				}
			}
			finish(q)
			written = append(written, q)
		}
		for name, panels := range map[string][]*plot.Plot{"time-by-" + axis: times, "bytes-by-" + axis: written} {
			if len(panels) == 0 {
				continue
			}
			for _, format := range []string{"png", "svg"} {
				var err error
				if files[name+"."+format], err = drawn(panels, format); err != nil {
					return nil, err
				}
			}
		}
	}
	return files, nil
}

// drawn is the panels in one picture, two in a row.
func drawn(panels []*plot.Plot, format string) ([]byte, error) {
	columns := min(len(panels), 2)
	var grid [][]*plot.Plot
	for row := range slices.Chunk(panels, columns) {
		grid = append(grid, append(slices.Clone(row), make([]*plot.Plot, columns-len(row))...))
	}
	c, err := draw.NewFormattedCanvas(vg.Length(columns)*5*vg.Inch, vg.Length(len(grid))*4*vg.Inch, format)
	if err != nil {
		return nil, err
	}
	gap := vg.Points(12)
	tiles := draw.Tiles{Rows: len(grid), Cols: columns, PadX: gap, PadY: gap, PadTop: gap, PadBottom: gap, PadLeft: gap, PadRight: gap}
	for i, row := range plot.Align(grid, tiles, draw.New(c)) {
		for j, canvas := range row {
			if p := grid[i][j]; p != nil {
				p.Draw(canvas)
			}
		}
	}
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	return b.Bytes(), err
}

// panel is an empty plot, logarithmic both ways.
func panel(title, x, y string, unit func(float64) string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{2, func(v float64) string { return fmt.Sprint(v) }}, ticks{10, unit}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	return p
}

// finish gives a panel whole decades, and one more for the legend.
func finish(p *plot.Plot) {
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max))+1)
}

// ticks are at the powers of a base.
type ticks struct {
	base float64
	unit func(float64) string
}

func (t ticks) Ticks(low, high float64) []plot.Tick {
	const slack = 1e-9 // powers are not exact
	var list []plot.Tick
	for n := math.Ceil(math.Log(low)/math.Log(t.base) - slack); ; n++ {
		v := math.Pow(t.base, n)
		if v > high*(1+slack) {
			return list
		}
		list = append(list, plot.Tick{Value: v, Label: t.unit(v)})
	}
}

// series is a line with the spread at each point.
type series struct {
	plotter.XYs
	plotter.YErrors
}

func (g *Growth) points(of func(*Result) Samples) series {
	var s series
	for i, v := range g.Values {
		samples := of(&g.Results[i])
		median := samples.Median()
		low, high := samples.spread()
		s.XYs = append(s.XYs, plotter.XY{X: float64(v), Y: median})
		s.YErrors = append(s.YErrors, struct{ Low, High float64 }{median - low, high - median})
	}
	return s
}

// shortSeconds and shortBytes are powers of ten with their unit.
func shortSeconds(f float64) string { return short(f*1e9, "ns", "us", "ms", "s") }

func shortBytes(f float64) string { return short(f, "B", "kB", "MB", "GB") }

func short(f float64, units ...string) string {
	i := 0
	for ; f >= 999 && i < len(units)-1; i++ {
		f /= 1000
	}
	return fmt.Sprintf("%.3g %s", f, units[i])
}

// colours are those of the lines of a panel.
var colours = []color.Color{
	color.RGBA{R: 0x1b, G: 0x5e, B: 0xa8, A: 0xff}, color.RGBA{R: 0x2e, G: 0x9e, B: 0x5b, A: 0xff}, color.RGBA{R: 0xc8, G: 0x50, B: 0x1e, A: 0xff},
}

func addLine(p *plot.Plot, name string, i int, s series) error {
	line, points, err := plotter.NewLinePoints(s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	bars, err := plotter.NewYErrorBars(s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	line.Color, points.Color, bars.Color = colours[i], colours[i], colours[i]
	line.Width = vg.Points(1.2)
	points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(2)
	p.Add(line, points, bars)
	p.Legend.Add(name, line, points)
	return nil
}
