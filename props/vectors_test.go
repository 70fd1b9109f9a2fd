package props

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// TestVectors: the elements and bytes that docs/case-format.md shows, for a port
// to compare its own with, are right.
func TestVectors(t *testing.T) {
	doc, err := os.ReadFile("../docs/case-format.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| token | plane | head | elements 0 to 3 | as bfloat16 |\n| --- | --- | --- | --- | --- |\n")
	for _, v := range []struct{ token, plane, head int }{{1, 0, 0}, {1, 1, 1}, {-1, 0, 0}} {
		s := corpus.Shape{KVHeads: v.head + 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16}
		data := corpus.AppendToken(nil, v.token, v.plane, s, corpus.Grid)[v.head*8:]
		var values, words []string
		for d := range 4 {
			b := data[2*d : 2*d+2]
			values = append(values, fmt.Sprint(math.Float32frombits(uint32(b[0])<<16|uint32(b[1])<<24)))
			words = append(words, hex.EncodeToString(b))
		}
		fmt.Fprintf(&table, "| %d | %d | %d | %s | `%s` |\n", v.token, v.plane, v.head, strings.Join(values, ", "), strings.Join(words, " "))
	}
	if !strings.Contains(string(doc), table.String()) {
		t.Errorf("docs/case-format.md does not have this table:\n%s", table.String())
	}
}
