package draw

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// reported is a run that found two failures.
func reported(t *testing.T) *Report {
	c := parse(t, "", wrapping)
	return &Report{
		Target: "port 1.0", Command: "ringcheck check -seed 7 -- python3 target.py", Seed: 7,
		Passed: 214, Failed: 2, Skipped: 5, // cases, some of two kinds
		Verdicts: []Verdict{
			{Property: "reference", Kind: "rotating", Passed: 120},
			{Property: "reference", Kind: "batch_rotating", Passed: 95, Failed: 2, Skipped: 1},
			{Property: "window", Kind: "rotating", Skipped: 4},
		},
		Situations: []Count{{"the ring wraps", 210}, {"a merge of an overshoot", 0}},
		Skips:      []Count{{"the target does not claim operation trim", 5}},
		Failures: []Failure{
			{
				Case: "random case 3", Property: "reference", Kinds: []string{"rotating", "batch_rotating"}, What: "#4 b1.update: returned differs\n- 5\n+ 2",
				File: "ringcheck-found/ab.json", Repeat: "ringcheck replay ringcheck-found/ab.json -- python3 target.py",
				Show:    "ringcheck show ringcheck-found/ab.json -- python3 target.py",
				Drawing: drawing(t, c, props.Layout, func(steps []corpus.Step) { swap(steps[4], 0, 1) }),
			},
			{
				Case: "random case 9", Property: "reference", Kinds: []string{"batch_rotating"}, What: "state.idx is 3, want 2",
				Drawing: drawing(t, c, props.Layout, func(steps []corpus.Step) { flip(steps[5].Mask, 3) }),
			},
		},
	}
}

func reportPage(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Page(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReport(t *testing.T) {
	page := reportPage(t, reported(t))
	for _, want := range []string{
		`<span class="outcome bad">failed</span>`,
		`<dd>214 passed, 2 failed, 5 skipped</dd>`,
		`<h3>reference · rotating, batch_rotating <span`,
		`<td class="bad">✗ 2<span class="sr"> failed</span><small> of 97</small></td>`,
		`<td class="void"><span class="sr">not asked</span></td>`,
		`<tr class="never"><th scope="row">a merge of an overshoot</th><td>never</td></tr>`,
		`<code class="command">ringcheck show ringcheck-found/ab.json -- python3 target.py</code>`,
		`<a href="failure-1.html">all steps</a>`, `<a href="failure-2.html">all steps</a>`,
		`<figcaption>b1 holds and returned, came`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the page", want)
		}
	}
}

func TestReportVerdict(t *testing.T) {
	for _, test := range []struct {
		r    Report
		want string
	}{
		{Report{Passed: 1, Verdicts: []Verdict{{Property: "p", Kind: "kv", Passed: 1}}}, "passed"},
		{Report{Verdicts: []Verdict{{Property: "p", Kind: "kv", Skipped: 1}}}, "could not run"},
		{Report{Passed: 1, Verdicts: []Verdict{{Property: "p", Kind: "kv", Passed: 1}}, Broken: []string{"the child ended"}}, "could not run"},
		{Report{Passed: 1, Verdicts: []Verdict{{Property: "p", Kind: "kv", Passed: 1}}, Failures: []Failure{{}}}, "failed"},
		{Report{Passed: 1, Failed: 1}, "failed"},
		{Report{}, "could not run"},
	} {
		if page := reportPage(t, &test.r); !strings.Contains(page, ">"+test.want+"</span></h1>") {
			t.Errorf("%+v: not %q", test.r, test.want)
		}
	}
}

func TestJUnit(t *testing.T) {
	r := reported(t)
	r.Broken = []string{"nowhere.json: cannot be read\nsay so"}
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ringcheck port 1.0" tests="4" failures="1" errors="1" skipped="1">
 <testsuite name="reference" tests="2" failures="1" errors="0" skipped="0">
  <testcase name="rotating" classname="ringcheck.reference"></testcase>
  <testcase name="batch_rotating" classname="ringcheck.reference">
   <failure message="2 of 97 cases failed">&#xA;random case 3: #4 b1.update: returned differs&#xA;- 5&#xA;+ 2&#xA;filed: ringcheck-found/ab.json&#xA;repeat: ringcheck replay ringcheck-found/ab.json -- python3 target.py&#xA;see it: ringcheck show ringcheck-found/ab.json -- python3 target.py&#xA;&#xA;random case 9: state.idx is 3, want 2&#xA;</failure>
  </testcase>
 </testsuite>
 <testsuite name="window" tests="1" failures="0" errors="0" skipped="1">
  <testcase name="rotating" classname="ringcheck.window">
   <skipped message="4 cases skipped"></skipped>
  </testcase>
 </testsuite>
 <testsuite name="could not be judged" tests="1" failures="0" errors="1" skipped="0">
  <testcase name="1" classname="ringcheck">
   <error message="nowhere.json: cannot be read">nowhere.json: cannot be read&#xA;say so</error>
  </testcase>
 </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Many failures are listed, and the first of them drawn.
func TestReportMany(t *testing.T) {
	r := reported(t)
	for range 200 {
		r.Failures = append(r.Failures, r.Failures[0])
	}
	if got := r.FailureFile(reportDrawn); got != "" {
		t.Errorf("failure %d has the page %s", reportDrawn+1, got)
	}
	page := reportPage(t, r)
	if n := strings.Count(page, "<details"); n != reportDrawn {
		t.Errorf("%d steps are drawn, want %d", n, reportDrawn)
	}
	if n := strings.Count(page, `<li id="failure-`); n != len(r.Failures) {
		t.Errorf("%d failures are listed, want %d", n, len(r.Failures))
	}
}

func TestReportHostile(t *testing.T) {
	const evil = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\x00\u202e]]> \"'&"
	r := &Report{
		Target: evil, Command: evil, Broken: []string{evil},
		Verdicts:   []Verdict{{Property: evil, Kind: evil, Failed: 1}, {Property: evil, Kind: "kv", Passed: 1}},
		Situations: []Count{{evil, 1}}, Skips: []Count{{evil, 2}},
		Failures: []Failure{{Case: evil, Property: evil, Kinds: []string{evil}, What: evil + "\n" + evil, File: evil, Repeat: evil, Show: evil}},
	}
	page := reportPage(t, r)
	for _, bad := range []string{"<script", "<img", "\x1b", "\x00", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	var suites struct {
		Suites []struct {
			Cases []struct {
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil || !strings.Contains(suites.Suites[0].Cases[0].Failure, "<script>alert(1)</script>") {
		t.Errorf("%v: the text is not what it was: %+v", err, suites)
	}
}

func testReport(t *testing.T, browser context.Context) {
	r := reported(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "index.html")
	if err := os.WriteFile(name, []byte(reportPage(t, r)), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, browser, name)
	p.eval(`document.querySelector("h1 .outcome").textContent`, "failed")
	p.eval(`[...document.querySelectorAll(".verdicts thead th")].map(h => h.textContent).join(" ")`, "property rotating batch_rotating")
	p.eval(`[...document.querySelectorAll("details")].map(d => d.open).join(" ")`, "true false")
	p.eval(`document.querySelectorAll("#failure-1 .came td.differs").length`, "4")
	p.eval(`getComputedStyle(document.querySelector("#failure-1 td.differs")).outlineStyle`, "solid") // its style is let in
	p.eval(`document.scripts.length`, "0")
}
