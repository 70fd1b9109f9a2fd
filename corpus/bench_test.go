package corpus

import (
	"io/fs"
	"testing"

	"example.com/ringcheck/reference/ring"
)

// embeddedCases returns the texts and the cases that come with the package.
func embeddedCases(b *testing.B) (texts [][]byte, cases []Case, size int64) {
	for f, err := range All(FS()) {
		if err != nil {
			b.Fatal(err)
		}
		text, err := fs.ReadFile(FS(), f.Path)
		if err != nil {
			b.Fatal(err)
		}
		texts, cases, size = append(texts, text), append(cases, f.Case), size+int64(len(text))
	}
	return texts, cases, size
}

func BenchmarkParse(b *testing.B) {
	texts, _, size := embeddedCases(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			if _, err := Parse(text, ""); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkFormat(b *testing.B) {
	_, cases, size := embeddedCases(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range cases {
			Format(c)
		}
	}
}

func BenchmarkLint(b *testing.B) {
	_, cases, size := embeddedCases(b)
	b.SetBytes(size)
	for b.Loop() {
		for _, c := range cases {
			Lint(c)
		}
	}
}

func BenchmarkTokenArray(b *testing.B) {
	s := Shape{2, 8, 8, ring.BFloat16}
	tokens := [][]int{{1, 2, 3, 4}, {5, 6, 7, 8}}
	b.SetBytes(int64(len(TokenArray(s, Grid, 0, tokens).Data)))
	b.ReportAllocs()
	for b.Loop() {
		TokenArray(s, Grid, 0, tokens)
	}
}

func BenchmarkLookup(b *testing.B) {
	s := Shape{2, 8, 8, ring.BFloat16}
	l := NewLookup()
	for id := range 1000 {
		l.Add(id+1, AppendToken(nil, id+1, 0, s, Grid), AppendToken(nil, id+1, 1, s, Grid))
	}
	keys, values := TokenArray(s, Grid, 0, [][]int{{500}}), TokenArray(s, Grid, 1, [][]int{{500}})
	var k, v []byte
	b.ReportAllocs()
	for b.Loop() {
		k, v = AppendColumn(k[:0], keys, 0, 0), AppendColumn(v[:0], values, 0, 0)
		if id, ok := l.ID(k, v); !ok || id != 500 {
			b.Fatal(id, ok)
		}
	}
}
