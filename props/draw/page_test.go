package draw

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// browser starts a headless Chromium. CHROMIUM may name it, and it must then be
// there; without it the test is skipped where none is installed.
func browser(t *testing.T) context.Context {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell"}
	must := os.Getenv("CHROMIUM")
	if must != "" {
		names = []string{must}
	}
	at := ""
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && at == "" {
			at = path
		}
	}
	switch {
	case at == "" && must != "":
		t.Fatalf("CHROMIUM is %q, and there is no such program", must)
	case at == "":
		t.Skipf("no Chromium found (looked for %s); install one, or name it in CHROMIUM, to test the page in a browser", strings.Join(names, ", "))
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute) // against a browser that hangs
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(at), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900))...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

type action = chromedp.Action[chromedp.Void]

// command is a command of the browser's protocol whose answer says nothing.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// script runs JavaScript.
func script(js string) action { return chromedp.Evaluate[chromedp.Void](js) }

// tab is a page in a browser. It records what a page must not do.
type tab struct {
	*testing.T
	context.Context
	mu  sync.Mutex
	bad []string // requests, and errors in the console
}

// open opens a file in a new tab.
func open(t *testing.T, browser context.Context, file string, before ...action) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser)
	p := &tab{T: t, Context: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if path, _, _ := strings.Cut(file, "#"); e.Request.URL != "file://"+path {
				p.bad = append(p.bad, "asks for "+e.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			p.bad = append(p.bad, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			p.bad = append(p.bad, e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.bad) > 0 {
			t.Errorf("the page: %s", strings.Join(p.bad, "\n"))
		}
	})
	p.run(command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}))
	p.run(append(before, chromedp.Navigate("file://"+file))...)
	return p
}

func (p *tab) run(actions ...action) {
	p.Helper()
	if err := chromedp.Do(p.Context, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval asserts what an expression of JavaScript is, as text.
func (p *tab) eval(js, want string) {
	p.Helper()
	if got := p.text(js); got != want {
		p.Errorf("%s is %q, want %q", js, got, want)
	}
}

func (p *tab) text(js string) string {
	p.Helper()
	got, err := chromedp.Run(p.Context, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		p.Fatal(err)
	}
	return got
}

// key presses one key.
func (p *tab) key(k string) {
	p.Helper()
	p.run(chromedp.KeyEvent(k))
}

// visible are the numbers of the steps that can be seen.
const visible = `[...document.querySelectorAll(".step")].filter(s => s.offsetHeight > 0).map(s => s.dataset.n).join(" ")`

// pageFile writes a page.
func pageFile(t *testing.T, d *Drawing) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := d.Page(f); err != nil {
		t.Fatal(err)
	}
	return name
}

// fortySteps is a batched ring of 40 operations, in which step 28 fails: two
// columns have changed places.
func fortySteps(t *testing.T) *Drawing {
	ops := []string{
		`{"op":"new","out":"b1","kind":"batch_rotating","max_size":8,"left_padding":[0,2]}`,
		`{"op":"update","cache":"b1","tokens":[[1001,1002,1003,1004],[-1,-2,2001,2002]]}`,
	}
	for i := 0; len(ops) < 40; i++ {
		ops = append(ops, `{"op":"mask","cache":"b1","n":1}`,
			fmt.Sprintf(`{"op":"update","cache":"b1","tokens":[[%d],[%d]]}`, 1005+i, 2003+i))
	}
	return drawing(t, parse(t, "", strings.Join(ops, "\n")), props.Layout, func(steps []corpus.Step) { swap(steps[29], 2, 5) })
}

func TestPage(t *testing.T) {
	ctx := browser(t)
	t.Run("steps", func(t *testing.T) { testSteps(t, ctx) })
	t.Run("difference", func(t *testing.T) { testDifference(t, ctx) })
	t.Run("wide", func(t *testing.T) { testWide(t, ctx) })
	t.Run("light and dark", func(t *testing.T) { testTheme(t, ctx) })
	t.Run("paper and no script", func(t *testing.T) { testPaper(t, ctx) })
	t.Run("accessible", func(t *testing.T) { testAccessible(t, ctx) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, ctx) })
	t.Run("report", func(t *testing.T) { testReport(t, ctx) })
}

func testSteps(t *testing.T, browser context.Context) {
	d := fortySteps(t)
	if len(d.Steps) != 40 || d.Failing != 29 {
		t.Fatalf("%d steps, %d fails", len(d.Steps), d.Failing)
	}
	p := open(t, browser, pageFile(t, d))
	at := func(n string) {
		t.Helper()
		p.eval(visible, n)
		p.eval(`document.querySelector("nav [aria-current]").getAttribute("href")`, "#step-"+n)
		p.eval(`document.getElementById("slider").value`, n)
	}
	at("29") // the failing one
	p.eval(`document.getElementById("count").textContent`, "30 of 40")
	p.eval(`location.hash`, "")
	p.run(chromedp.Click(chromedp.CSS("#forward")))
	at("30")
	p.eval(`location.hash`, "#step-30")
	p.eval(`document.getElementById("status").textContent`, "Step 31 of 40: #30 b1.mask n=1")
	p.run(chromedp.Click(chromedp.CSS("#back")), chromedp.Click(chromedp.CSS("#back")))
	at("28")
	p.run(chromedp.Click(chromedp.CSS("#first")))
	at("0")
	p.eval(`document.getElementById("back").disabled && document.getElementById("first").disabled`, "true")
	p.key("k") // there is nothing before it
	at("0")
	p.key(kb.ArrowRight)
	at("1")
	p.key("j")
	at("2")
	p.key(kb.ArrowLeft)
	at("1")
	p.key("k")
	at("0")
	p.key(kb.End)
	at("39")
	p.eval(`document.getElementById("forward").disabled`, "true")
	p.key(kb.Home)
	at("0")
	p.key("f")
	at("29")
	p.run(chromedp.Click(chromedp.CSS("#last")), chromedp.Click(chromedp.CSS("#failing")))
	at("29")
	p.eval(`document.getElementById("status").textContent.startsWith("Step 30 of 40: #29 b1.update [[1018] [2016]]. Fails: ✗ returned: not as wanted")`, "true")
	p.run(chromedp.Focus(chromedp.CSS("#slider")))
	p.key(kb.ArrowRight) // the slider's own
	at("30")
	p.run(chromedp.Click(chromedp.CSS(`nav a[href="#step-12"]`)))
	at("12")
	p.eval(`document.activeElement.id`, "call-12")
	p.run(script(`location.hash = "#step-7"`), chromedp.Poll[chromedp.Void](`document.querySelector("#step-7").offsetHeight > 0`))
	at("7")
	again := open(t, browser, pageFile(t, d)+"#step-3")
	again.eval(visible, "3")
}

func testDifference(t *testing.T, browser context.Context) {
	p := open(t, browser, pageFile(t, fortySteps(t)))
	marked := func(side string) string {
		return `[...document.querySelectorAll("#step-29 figure.` + side + ` td.differs")].map(c => c.firstChild.textContent).join(" ")`
	}
	p.eval(marked("wanted"), "1011 1014 2009 2012")
	p.eval(marked("came"), "1014 1011 2012 2009")
	p.eval(`document.querySelector("#step-29 figure.came td.differs").textContent`, "1014 differs")
	p.eval(`getComputedStyle(document.querySelector("td.differs")).outlineStyle`, "solid")
	p.eval(`document.querySelectorAll("#step-28 .differs").length`, "0")
	p.eval(`document.querySelector("nav a.failing").getAttribute("href")`, "#step-29")
}

func testWide(t *testing.T, browser context.Context) {
	ids := make([]string, 599)
	for i := range ids {
		ids[i] = fmt.Sprint(10001 + i)
	}
	c := parse(t, "", `
{"op":"new","out":"r1","kind":"rotating","max_size":600}
{"op":"mask","cache":"r1","n":599}
{"op":"update","cache":"r1","tokens":[[`+strings.Join(ids, ",")+`]]}
{"op":"update","cache":"r1","tokens":[[20001]]}
{"op":"update","cache":"r1","tokens":[[20002]]}`)
	p := open(t, browser, pageFile(t, drawing(t, c, props.Layout, func(steps []corpus.Step) { swap(steps[4], 300, 500) })))
	p.eval(visible, "4")
	p.eval(`[...document.querySelectorAll("#step-4 .came td.differs")].map(c => c.firstChild.textContent).join(" ")`, "10501 10301")
	p.eval(`document.querySelector("#step-4 .came tfoot .arrow").textContent`, "▲ 1: next")
	p.eval(`document.querySelector("#step-4 .came tr.row td.gap").title`, "10007 to 10296")
	p.eval(`document.querySelectorAll("#step-4 .strip rect.differs").length`, "4")
	for _, width := range []int64{1280, 390} {
		p.run(chromedp.EmulateViewport(width, 800))
		p.eval(`document.documentElement.scrollWidth <= innerWidth`, "true")
		// The labels stay where the columns move.
		p.eval(`(() => {
			const box = document.querySelector("#step-4 .scroll"), label = box.querySelector("tbody th");
			box.scrollLeft = 200;
			return Math.abs(label.getBoundingClientRect().left - box.getBoundingClientRect().left) < 2;
		})()`, "true")
	}
	p.key(kb.Home)
	p.key("j")
	p.eval(`[...document.querySelectorAll("#step-1 tbody th")].map(c => c.textContent).join("|")`,
		"row 0 keys|query 0 (10001)|query 1 (10002)|query 2 (10003)|query 3 (10004)|query 4 (10005)|query 5 (10006)|… 588 queries|"+
			"query 594 (10595)|query 595 (10596)|query 596 (10597)|query 597 (10598)|query 598 (10599)")
	p.eval(`document.querySelector("#step-1 tr.query:last-child .tail").textContent`, "attends to 599 keys: 10001–10599")
}

func testTheme(t *testing.T, browser context.Context) {
	file := pageFile(t, fortySteps(t))
	const ground = `getComputedStyle(document.body).backgroundColor`
	media := func(scheme string) action {
		return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
	}
	const light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 27)"
	p := open(t, browser, file, media("light"))
	p.eval(ground, light)
	p.run(chromedp.Click(chromedp.CSS("#theme")))
	p.eval(ground, dark)
	p.eval(`document.getElementById("theme").textContent`, "Light")
	p = open(t, browser, file, media("dark"))
	p.eval(ground, dark)
	p.run(chromedp.Click(chromedp.CSS("#theme")))
	p.eval(ground, light)
}

// On paper and without a script all steps are there, and no controls.
func testPaper(t *testing.T, browser context.Context) {
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprint(i))
	}
	file := pageFile(t, fortySteps(t))
	p := open(t, browser, file)
	p.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	p.eval(visible, strings.Join(all, " "))
	p.eval(`document.querySelector(".controls").offsetHeight + document.querySelector("nav").offsetHeight`, "0")
	p.eval(`Math.max(...[...document.querySelectorAll("table")].map(t => t.offsetWidth)) < 980`, "true") // a page, lying

	p = open(t, browser, file, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	p.run(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false}))
	p.eval(visible, strings.Join(all, " "))
	p.eval(`document.querySelector(".controls").offsetHeight`, "0")
}

// A screen reader finds named tables with headers, named controls and what the
// step is.
func testAccessible(t *testing.T, browser context.Context) {
	p := open(t, browser, pageFile(t, fortySteps(t)))
	names := map[string][]string{}
	tree, err := chromedp.Call(p.Context, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tree.Nodes {
		if !n.Ignored && n.Role != nil && n.Name != nil {
			role, name := strings.Trim(string(n.Role.Value), `"`), strings.Trim(string(n.Name.Value), `"`)
			names[role] = append(names[role], name)
		}
	}
	for role, want := range map[string][]string{
		"table":        {"b1 holds and returned, wanted", "b1 holds and returned, came"},
		"button":       {"First step", "Step back", "Step forward", "Last step", "Failing step", "Dark"},
		"slider":       {"Step"},
		"rowheader":    {"row 0", "row 1", "idx"},
		"columnheader": {"column", "0", "7"},
		"navigation":   {"All steps"},
		"heading":      {"drawn", "#29 b1.update [[1018] [2016]]"},
		"region":       {"#29 b1.update [[1018] [2016]]"},
	} {
		for _, name := range want {
			if !slices.Contains(names[role], name) {
				t.Errorf("no %s named %q; there are %q", role, name, names[role])
			}
		}
	}
	for _, role := range []string{"button", "slider", "table", "region", "link"} {
		if slices.Contains(names[role], "") {
			t.Errorf("a %s has no name", role)
		}
	}
}

// What a file or a child says is text: it makes no element and runs nowhere.
func testHostile(t *testing.T, browser context.Context) {
	const evil = `</script></style></title><script>pwned = 1</script><img src=x onerror="pwned = 1"><svg onload="pwned = 1"> "' onfocus=pwned=1 autofocus`
	c := parse(t, "", wrapping)
	c.Name, c.Notes, c.Source, c.ID, c.Link = evil, evil, evil, evil, `https://example.com/"onmouseover="pwned=1`
	c.Found = &corpus.Found{Property: evil, Target: evil, Version: evil}
	d := drawing(t, c, props.Layout, func(steps []corpus.Step) { steps[4] = corpus.Step{Error: evil, Message: evil} })
	p := open(t, browser, pageFile(t, d))
	p.eval(`typeof pwned`, "undefined")
	p.eval(`document.scripts.length + " " + document.images.length + " " + document.querySelectorAll("[onload],[onerror],[onfocus],[onmouseover],[autofocus]").length`, "1 0 0")
	p.eval(`document.querySelector("h1").textContent`, evil)
	p.eval(visible, "4")
	// Even markup that got in would not run: the page allows its own script only.
	p.run(script(`document.body.insertAdjacentHTML("beforeend", "<img src=x: onerror='pwned = 1'>"),
		document.body.appendChild(Object.assign(document.createElement("script"), {textContent: "pwned = 1"}))`))
	p.eval(`typeof pwned`, "undefined")
	p.mu.Lock()
	p.bad = nil // the browser has said so
	p.mu.Unlock()
}
