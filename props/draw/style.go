package draw

import (
	"fmt"
	"strings"
)

// shade is a colour on light and on dark ground.
type shade struct{ light, dark string }

// look is how a thing is drawn: its ground, its text, its edge.
type look struct {
	name            string
	fill, ink, edge shade
	dashed          bool
}

var (
	ground  = shade{"#ffffff", "#14171b"}
	ink     = shade{"#1b1f24", "#e7eaee"}
	muted   = shade{"#59626d", "#9da7b3"}
	rule    = shade{"#d7dce2", "#343b44"}
	wrong   = shade{"#c1121f", "#ff7b72"}
	nothing = shade{"none", "none"}
)

// looks are the classes and marks of cells; a later one overrides an earlier.
var looks = []look{
	{"token", shade{"#dbe8fd", "#1c3354"}, shade{"#0b2a5b", "#d6e6ff"}, shade{"#a5c2ee", "#365c92"}, false},
	{"pad", shade{"#f3e8d0", "#403619"}, shade{"#664b00", "#f0d999"}, shade{"#d3bb80", "#77632f"}, false},
	{"zeros", shade{"#f0f2f4", "#23282e"}, shade{"#59626d", "#9da7b3"}, shade{"#d5d9de", "#3c444d"}, false},
	{"stale", ground, shade{"#616b76", "#939daa"}, shade{"#98a2ad", "#5a646f"}, true},
	{"spare", ground, muted, shade{"#cfd5db", "#3c444d"}, true},
	{"unknown", shade{"#f7d9f5", "#4a1f47"}, shade{"#7a0f72", "#ffc9fa"}, shade{"#d58fd0", "#8c4486"}, false},
	{"order", nothing, muted, nothing, false},
	{"attends", shade{"#3b73d9", "#5b92f0"}, shade{"#ffffff", "#0b1a33"}, shade{"#2f62c0", "#7fabf5"}, false},
	{"hidden", shade{"#f3f5f7", "#1d2126"}, muted, shade{"#e4e8ec", "#2b3138"}, false},
	{"extra", shade{"#ffd9d6", "#5a1d1d"}, wrong, wrong, false},
	{"missing", ground, wrong, wrong, true},
	{"none", nothing, muted, nothing, false},
	{"fresh", shade{"#cdf1d6", "#124a28"}, shade{"#0a3d1a", "#d3f9dc"}, shade{"#5cb377", "#2f8f4e"}, false},
}

// pageLooks are the looks as rules for the cells of a page's tables.
var pageLooks = func() string {
	var b strings.Builder
	both := func(s shade) string {
		if s == nothing {
			return "transparent"
		}
		return fmt.Sprintf("light-dark(%s,%s)", s.light, s.dark)
	}
	fmt.Fprintf(&b, ":root{--ground:%s;--ink:%s;--muted:%s;--rule:%s;--wrong:%s}\n", both(ground), both(ink), both(muted), both(rule), both(wrong))
	for _, l := range looks {
		fmt.Fprintf(&b, ".cells .%[1]s,.swatch.%[1]s{background:%[2]s;color:%[3]s;border:1px %[5]s %[4]s}.strip .%[1]s{fill:%[4]s}\n",
			l.name, both(l.fill), both(l.ink), both(l.edge), map[bool]string{true: "dashed", false: "solid"}[l.dashed])
	}
	fmt.Fprintf(&b, ".strip .differs{fill:%s}\n", both(wrong))
	return b.String()
}()

// pictureStyle are the same looks for the shapes of a picture, in the plain CSS
// that every viewer knows.
var pictureStyle = func() string {
	var b strings.Builder
	rules := func(of func(shade) string) {
		fmt.Fprintf(&b, ".ground{fill:%s}text{fill:%s}.number,.label,.note,.facts{fill:%s}.verdict,.words{fill:%s}.bar,.arrow{fill:%s;stroke:%s}\n",
			of(ground), of(ink), of(muted), of(wrong), of(ink), of(ink))
		for _, l := range looks {
			fmt.Fprintf(&b, "rect.%s{fill:%s;stroke:%s}text.%s{fill:%s}\n", l.name, of(l.fill), of(l.edge), l.name, of(l.ink))
		}
		fmt.Fprintf(&b, "rect.differs{stroke:%s}\n", of(wrong))
	}
	b.WriteString("\ntext{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace}.number,.in{text-anchor:middle}.call,.caption{font-weight:600}.stale,.spare,.missing{stroke-dasharray:3 2}text.stale{stroke-dasharray:none;text-decoration:line-through}rect.differs{stroke-width:2.5}.bar{stroke-width:2}\n")
	rules(func(s shade) string { return s.light })
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	rules(func(s shade) string { return s.dark })
	b.WriteString("}\n")
	return b.String()
}()
