package props

import (
	"context"
	"os"
	"strings"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// Each row's case is run under both semantics.
func TestLedger(t *testing.T) {
	cases := ledgerCases()
	tests, err := os.ReadFile("known_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range reference.Ledger {
		if q.Case == "" {
			if !strings.Contains(string(tests), "\nfunc "+q.Test+"(") {
				t.Errorf("%s: known_test.go has no %s", q.ID, q.Test)
			}
			continue
		}
		c, ok := cases[q.Case]
		if !ok || c.ID != q.ID || q.Step >= len(c.Ops) {
			t.Errorf("%s: operation %d of case %q: there is none, or it is of %q", q.ID, q.Step, q.Case, c.ID)
			continue
		}
		for semantics, want := range map[ring.Semantics]string{ring.MLXLM: q.MLXLM, ring.Exact: q.Exact} {
			c.Semantics = semantics
			got, err := observe(context.Background(), ReferenceTarget(), c, q)
			if err != nil {
				t.Errorf("%s: %v", q.ID, err)
			} else if got != want {
				t.Errorf("%s: operation %d of case %s under %v: %s is %s, want %s", q.ID, q.Step, q.Case, semantics, q.Field, got, want)
			}
		}
	}
}

// A row that upstream has put right no longer shows a difference, but for a
// kind that exact does not have.
func TestLedgerRowsThatAreGone(t *testing.T) {
	for _, q := range reference.Ledger {
		if q.Gone != "" && q.MLXLM != q.Exact && q.Exact != "error:not_supported" {
			t.Errorf("%s: is gone since %s, and differs: %s, %s", q.ID, q.Gone, q.MLXLM, q.Exact)
		}
	}
}

func TestCheckLedger(t *testing.T) {
	changed, checked, err := CheckLedger(context.Background(), ReferenceTarget())
	if err != nil || len(changed) > 0 {
		t.Errorf("the reference: %v, %v", changed, err)
	}
	if checked < 60 {
		t.Errorf("%d rows were asked", checked)
	}

	ledger := reference.Ledger
	defer func() { reference.Ledger = ledger }()
	reference.Ledger = []reference.Quirk{ledger[2]}
	reference.Ledger[0].MLXLM = "7"
	changed, checked, err = CheckLedger(context.Background(), ReferenceTarget())
	if err != nil || checked != 1 || len(changed) != 1 || !strings.Contains(changed[0], "was 7, and is -2") {
		t.Errorf("a quirk that has changed: %q, %d asked, %v", changed, checked, err)
	}
}
