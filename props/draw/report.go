package draw

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// Report is what a run found. Its texts may be what a child has said: whatever
// writes a report makes them harmless.
type Report struct {
	Target  string // name and version of the implementation judged
	Command string // that repeats the run
	Seed    uint64
	Broken  []string // what could not be judged, a sentence each
	// Passed, Failed and Skipped count cases, and what else the run has asked.
	Passed, Failed, Skipped int
	// Verdicts says how often each property held, by kind of cache. A case that
	// has several kinds counts under each, and under each property that was asked
	// of it, so that these are no parts of the counts of the run.
	Verdicts   []Verdict
	Situations []Count // what the cases exercised; 0 for what they never did
	Skips      []Count // how often each reason to skip a case occurred
	Failures   []Failure
}

// Verdict counts the cases of one kind that one property was asked of.
type Verdict struct {
	Property, Kind          string
	Passed, Failed, Skipped int
}

// Count is how often something occurred.
type Count struct {
	Name string
	N    int
}

// Failure is a case of which a property does not hold.
type Failure struct {
	Case, Property string
	Kinds          []string // the failure is of each of these verdicts
	What           string   // what is wrong, in one or more lines
	File           string   // where the case is filed; "" if nowhere
	Repeat, Show   string   // commands; "" for none
	Drawing        *Drawing
}

// reportDrawn is the failures that a report draws; the others are listed.
const reportDrawn = 25

// FailureFile is the name of the file that a report's page expects the page of
// drawing i of its failures in, beside it; "" for a failure that is only listed.
func (r *Report) FailureFile(i int) string {
	if i >= reportDrawn || r.Failures[i].Drawing == nil {
		return ""
	}
	return fmt.Sprintf("failure-%d.html", i+1)
}

//go:embed report.html
var reportText string

//go:embed report.css
var reportStyle string

var reportTemplate = template.Must(template.Must(template.New("page").Parse(pageText)).New("report").Parse(reportText))

// reportData is what report.html shows.
type reportData struct {
	assets
	Target, Command string
	Seed            uint64
	Verdict         string // passed, failed, or could not run
	Passed          int
	Failed          int
	Skipped         int
	Broken          []string
	Kinds           []string
	Rows            []reportRow
	Situations      []Count
	Never           int // situations that no case exercised
	Skips           []Count
	Failures        []reportFailure
	Legend          []swatch
}

// Of is how many cases passed or failed.
func (v *Verdict) Of() int { return v.Passed + v.Failed }

// reportRow is a property's verdicts, in the order of the kinds; nil where it
// was asked of none.
type reportRow struct {
	Property string
	Cells    []*Verdict
}

type reportFailure struct {
	Failure
	N    int
	Page string
	// Step is the failing one, nil where none is drawn; First is the first drawn.
	Step  *pageStep
	First bool
}

// Page writes the report as one web page that needs nothing else but, for who
// follows its links, the pages of the failures ([Report.FailureFile]). An error
// is of w.
func (r *Report) Page(w io.Writer) error {
	p := reportData{
		assets: newAssets(pageLooks+pageStyle+reportStyle, ""),
		Target: clean(r.Target), Command: clean(r.Command), Seed: r.Seed, Verdict: "passed",
		Passed: r.Passed, Failed: r.Failed, Skipped: r.Skipped,
		Situations: cleanCounts(r.Situations), Skips: cleanCounts(r.Skips),
	}
	for _, text := range r.Broken {
		p.Broken = append(p.Broken, cleanLines(text))
	}
	rows := map[string]int{}
	columns := map[string]int{}
	for _, v := range r.Verdicts {
		if _, ok := columns[v.Kind]; !ok {
			columns[v.Kind] = len(p.Kinds)
			p.Kinds = append(p.Kinds, clean(v.Kind))
		}
	}
	for _, v := range r.Verdicts {
		k, ok := rows[v.Property]
		if !ok {
			k = len(p.Rows)
			rows[v.Property] = k
			p.Rows = append(p.Rows, reportRow{clean(v.Property), make([]*Verdict, len(p.Kinds))})
		}
		p.Rows[k].Cells[columns[v.Kind]] = &v
	}
	for _, s := range p.Situations {
		if s.N == 0 {
			p.Never++
		}
	}
	var tables []Table
	drawn := false
	for i := range r.Failures {
		f := reportFailure{Failure: r.Failures[i].clean(), N: i + 1, Page: r.FailureFile(i)}
		if d := f.Drawing; f.Page != "" && d.Failing >= 0 {
			s := &d.Steps[d.Failing]
			f.Step, f.First = &pageStep{s, figures(s.Tables)}, !drawn
			drawn = true
			tables = append(tables, s.Tables...)
		}
		p.Failures = append(p.Failures, f)
	}
	p.Legend = swatches(tables)
	switch {
	case len(r.Failures) > 0 || r.Failed > 0:
		p.Verdict = "failed"
	case len(r.Broken) > 0 || r.Passed == 0:
		p.Verdict = "could not run"
	}
	return reportTemplate.Execute(w, &p)
}

func (f Failure) clean() Failure {
	f.Case, f.Property, f.What = clean(f.Case), clean(f.Property), cleanLines(f.What)
	f.Kinds = slices.Clone(f.Kinds)
	for i := range f.Kinds {
		f.Kinds[i] = clean(f.Kinds[i])
	}
	f.File, f.Repeat, f.Show = clean(f.File), clean(f.Repeat), clean(f.Show)
	return f
}

func cleanCounts(counts []Count) []Count {
	counts = slices.Clone(counts)
	for i := range counts {
		counts[i].Name = clean(counts[i].Name)
	}
	return counts
}

// The elements of JUnit XML.
type (
	junitSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []junitSuite
	}
	junitSuite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []junitCase
	}
	junitCase struct {
		XMLName   xml.Name   `xml:"testcase"`
		Name      string     `xml:"name,attr"`
		ClassName string     `xml:"classname,attr"`
		Failure   *junitText `xml:"failure"`
		Error     *junitText `xml:"error"`
		Skipped   *junitText `xml:"skipped"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report for CI systems: a suite for each property, in it a
// test for each kind, so that a test has the same name in every run. What could
// not be judged is a suite of its own. An error is of w.
func (r *Report) JUnit(w io.Writer) error {
	all := junitSuites{Name: "ringcheck " + clean(r.Target)}
	places := map[string]int{}
	suite := func(name string) *junitSuite {
		k, ok := places[name]
		if !ok {
			k = len(all.Suites)
			places[name] = k
			all.Suites = append(all.Suites, junitSuite{Name: clean(name)})
		}
		return &all.Suites[k]
	}
	for _, v := range r.Verdicts {
		c := junitCase{Name: clean(v.Kind), ClassName: "ringcheck." + clean(v.Property)}
		switch {
		case v.Failed > 0:
			c.Failure = &junitText{Message: fmt.Sprintf("%d of %d cases failed", v.Failed, v.Of()), Text: r.failureText(v)}
		case v.Passed == 0:
			c.Skipped = &junitText{Message: fmt.Sprintf("%d cases skipped", v.Skipped)}
		}
		s := suite(v.Property)
		s.Cases = append(s.Cases, c)
	}
	for i, text := range r.Broken {
		text = cleanLines(text)
		first, _, _ := strings.Cut(text, "\n")
		s := suite("could not be judged")
		s.Cases = append(s.Cases, junitCase{Name: fmt.Sprint(i + 1), ClassName: "ringcheck", Error: &junitText{Message: first, Text: text}})
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		for _, c := range s.Cases {
			s.Tests++
			switch {
			case c.Failure != nil:
				s.Failures++
			case c.Error != nil:
				s.Errors++
			case c.Skipped != nil:
				s.Skipped++
			}
		}
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// failureText lists the failures that a verdict counts.
func (r *Report) failureText(v Verdict) string {
	var b strings.Builder
	for i := range r.Failures {
		f := r.Failures[i].clean()
		if r.Failures[i].Property != v.Property || !slices.Contains(r.Failures[i].Kinds, v.Kind) {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n", f.Case, f.What)
		for _, line := range [][2]string{{"filed: ", f.File}, {"repeat: ", f.Repeat}, {"see it: ", f.Show}} {
			if line[1] != "" {
				b.WriteString(line[0] + line[1] + "\n")
			}
		}
	}
	return b.String()
}
