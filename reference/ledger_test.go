package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/ringcheck/reference"
)

func TestLedgerIsWellFormed(t *testing.T) {
	rows := map[string]bool{}
	for _, q := range reference.Ledger {
		if rows[q.ID] {
			t.Errorf("%s: has two rows", q.ID)
		}
		rows[q.ID] = true
		if !strings.HasSuffix(strings.TrimRight(q.Sentence, ")"), ".") {
			t.Errorf("%s: %q is no sentence", q.ID, q.Sentence)
		}
		if !strings.HasPrefix(q.Link, "https://") {
			t.Errorf("%s: the link %q leads nowhere", q.ID, q.Link)
		}
		if shown := q.Field != "" && q.MLXLM != "" && q.Exact != ""; (q.Case != "") != shown || (q.Case != "") == (q.Test != "") {
			t.Errorf("%s: wants a case, a field and two values, or a test and none of these: %+v", q.ID, q)
		}
	}
	for letter, n := range map[string]int{"D": 30, "O": 6, "S": 6} {
		for i := range n {
			if id := fmt.Sprintf("%s-%d", letter, i+1); !rows[id] {
				t.Errorf("%s: has no row", id)
			}
		}
	}
}
