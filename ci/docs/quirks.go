package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
)

const quirksHead = `# The quirk ledger

Made by ` + "`go run ./ci/docs`" + ` from the table in [reference/ledger.go](../reference/ledger.go); change it there.

Each row is an oddity of mlx-lm 0.32.2, or a difference between it and what is right. Its case is run under both semantics; the last two columns are what both answer there. An id leads to the report, where there is one. ` + "`ringcheck show corpus/cases/known/ID.json`" + ` draws a case. The words are those of [the semantics](semantics.md).
`

// groups are the parts of the page: ids that begin alike, and a heading.
var groups = []struct{ prefix, heading, text string }{
	{"O-", "Defects of mlx-lm's rings", ""},
	{"Q", "What running the code showed", ""},
	{"M", "Reports about mlx-lm", ""},
	{"P", "Reports about ports and engines", ""},
	{"D-", "Differences that a serving engine notices", ""},
	{"S-", "Defects seen in an engine built on these rings", "No implementation here has them; mlx-lm's answer shows where it is open to the same mistake."},
}

// quirks is the page of the ledger.
func quirks() (string, error) {
	cases := map[string]corpus.Case{}
	for f, err := range corpus.All(corpus.FS()) {
		if err != nil {
			return "", err
		}
		cases[f.Path] = f.Case
	}
	var b strings.Builder
	b.WriteString(quirksHead)
	rows := 0
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.heading)
		if g.text != "" {
			b.WriteString(g.text + "\n\n")
		}
		b.WriteString("| id | kinds | what mlx-lm does | shown by | mlxlm | exact |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, q := range reference.Ledger {
			if !strings.HasPrefix(q.ID, g.prefix) {
				continue
			}
			row, err := quirkRow(q, cases)
			if err != nil {
				return "", err
			}
			b.WriteString(row)
			rows++
		}
	}
	if rows != len(reference.Ledger) {
		return "", fmt.Errorf("the groups of the page have %d of the ledger's %d rows; add a group", rows, len(reference.Ledger))
	}
	return b.String(), nil
}

// quirkRow is a row of the table.
func quirkRow(q reference.Quirk, cases map[string]corpus.Case) (string, error) {
	sentence := strings.ReplaceAll(q.Sentence, "|", `\|`)
	if q.Gone != "" {
		sentence += " (Right since " + q.Gone + ".)"
	}
	kinds, shown, mlxlm, exact := "", "`"+q.Test+"`, a Go test", "", ""
	if q.Case != "" {
		path := "known/" + q.Case + ".json"
		c, ok := cases[path]
		if !ok {
			return "", fmt.Errorf("%s: there is no case %s", q.ID, path)
		}
		kinds = kindsOf(c)
		shown = fmt.Sprintf("[%s](../corpus/cases/%s) #%d %s, `%s`", q.Case, path, q.Step, c.Ops[q.Step].Verb, q.Field)
		mlxlm, exact = answer(q.MLXLM), answer(q.Exact)
		if exact == mlxlm {
			exact = "the same"
		}
	}
	id := q.ID
	if !strings.Contains(q.Link, "/blob/") { // a report, not the source
		id = fmt.Sprintf("[%s](%s)", q.ID, q.Link)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", id, kinds, sentence, shown, mlxlm, exact), nil
}

// kindsOf lists the kinds of cache that a case has, in the order in which they
// appear.
func kindsOf(c corpus.Case) string {
	var kinds []string
	of := map[string]string{} // by name
	for _, op := range c.Ops {
		kind := string(op.Kind)
		switch op.Verb {
		case corpus.Merge:
			kind = of[op.Caches[0]]
			if kind == "kv" || strings.HasPrefix(kind, "rotating") {
				kind = "batch_" + kind
			}
		case corpus.Extract:
			kind = strings.TrimPrefix(of[op.Cache], "batch_")
		}
		of[op.Out] = kind
		if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}

// answer is a value of the ledger as the page has it.
func answer(value string) string {
	code, refused := strings.CutPrefix(value, "error:")
	if refused {
		return "refused: `" + code + "`"
	}
	return "`" + value + "`"
}
