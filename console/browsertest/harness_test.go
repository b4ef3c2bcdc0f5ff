package browsertest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// waitLimit bounds a wait for the browser. It is no expectation about speed.
const waitLimit = time.Minute

const rules = `package remit

allow contains "reads are fine" if input.access.action == "read"

allow contains "notes may change" if {
	input.access.action == "write"
	startswith(input.access.resource.path, "notes")
}

ask contains "a person looks at the other files" if {
	input.access.action == "write"
	not startswith(input.access.resource.path, "notes")
}
`

// built is the command, built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "remit-browser")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir, "./cmd/remit")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return filepath.Join(dir, "remit"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// place is a workspace with a journal, a console and a browser.
type place struct {
	t         *testing.T
	dir, env  string
	ctx       context.Context //nolint:containedctx // the one of the tab
	address   string
	mu        sync.Mutex // never held across a wait
	requests  []string
	problems  []string
	clicks    int
	workspace string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs chromium: run .ci/chromium")
	}
	_, err := built()
	require.NoError(t, err)
	p := &place{t: t, dir: t.TempDir()}
	p.workspace = filepath.Join(p.dir, "ws")
	require.NoError(t, os.Mkdir(p.workspace, 0o700))
	p.put("rules.rego", rules)
	return p
}

func (p *place) put(name, text string) string {
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (p *place) read(name string) string {
	b, err := os.ReadFile(filepath.Join(p.workspace, name))
	if os.IsNotExist(err) {
		return "(none)"
	}
	require.NoError(p.t, err)
	return string(b)
}

func (p *place) command(args ...string) *exec.Cmd {
	path, err := built()
	require.NoError(p.t, err)
	cmd := exec.Command(path, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"HOME=" + p.dir, "XDG_STATE_HOME=" + filepath.Join(p.dir, "state"), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// run runs calls in one transaction. The workspace has the journal.
func (p *place) run(calls ...string) {
	p.t.Helper()
	script := p.put("script.jsonl", strings.Join(calls, "\n")+"\n")
	args := []string{"run", "--workspace", "ws", "--policy", "rules.rego", "--on-ask", "wait"}
	if _, err := os.Stat(filepath.Join(p.dir, "notes.db")); err == nil {
		args = append(args, "--database", "main=sqlite:notes.db")
	}
	out, err := p.command(append(args, script)...).CombinedOutput()
	if err != nil { // denied, failed and waiting calls have their own exit codes
		require.Regexp(p.t, "exit status [345]", err.Error(), string(out))
	}
}

func write(path, text string) string {
	b, _ := json.Marshal(map[string]any{"tool": "file_write", "args": map[string]string{"path": path, "content": text}})
	return string(b)
}

// attended lets a process without a terminal approve, as a person does with
// remit approval allow-unattended.
func (p *place) attended() {
	all, err := filepath.Glob(filepath.Join(p.dir, "state", "remit", "*", "journal*"))
	require.NoError(p.t, err)
	require.NotEmpty(p.t, all)
	require.NoError(p.t, os.WriteFile(filepath.Join(filepath.Dir(all[0]), "approval.json"), []byte(`{"unattended":true}`), 0o600))
}

// open starts the console, and opens its address in a new browser.
func (p *place) open() {
	p.t.Helper()
	cmd := p.command("console", "--workspace", "ws", "--policy", "rules.rego", "--no-open", "--json")
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(p.t, err, said.String())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	var at struct{ URL string }
	require.NoError(p.t, json.Unmarshal(line, &at))
	p.address, _, _ = strings.Cut(at.URL, "/enter")
	p.browser()
	p.visit(at.URL)
	p.until(`document.querySelector("h1") && document.querySelector("h1").textContent === "Now"`)
}

// browser starts a browser that reports each request and each error of a page.
func (p *place) browser() {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("lang", "en"))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(alloc)
	p.ctx = ctx
	p.t.Cleanup(func() {
		end()
		stop()
	})
	require.NoError(p.t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	require.NoError(p.t, chromedp.Listen(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			p.problems = append(p.problems, e.ExceptionDetails.Text)
		}
	}))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(p.t, err)
	p.t.Cleanup(p.checkRequests)
}

// checkRequests checks that no request left the console, and that no page had an
// error. The browser draws its own icons of fields from data.
func (p *place) checkRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.requests {
		require.True(p.t, strings.HasPrefix(u, p.address+"/") || u == "about:blank" || strings.HasPrefix(u, "data:image/svg+xml;"), "a request to %s", u)
	}
	require.NotEmpty(p.t, p.requests)
	require.Empty(p.t, p.problems)
}

// proves skips a test that only make prove runs.
func proves(t *testing.T) {
	t.Helper()
	if os.Getenv("REMIT_PROVE") == "" {
		t.Skip("make prove ARGS=console, or REMIT_PROVE=1")
	}
}

func (p *place) visit(url string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.Navigate(url)))
}

// until waits until an expression is true in the page, which can be another one
// meanwhile.
func (p *place) until(expr string) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, waitLimit)
	defer stop()
	for ctx.Err() == nil {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`new Promise((done) => setTimeout(() => done(!!(`+expr+`)), 20))`, chromedp.EvalAwaitPromise))
		if err == nil && ok {
			return
		}
	}
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	require.Fail(p.t, "the page did not become as it must", "%s\n%s", expr, text)
}

// heading waits for the page with a heading.
func (p *place) heading(text string) {
	p.t.Helper()
	b, _ := json.Marshal(text)
	p.until(`document.readyState === "complete" && document.querySelector("h1") && document.querySelector("h1").textContent.startsWith(` + string(b) + `)`)
}

func (p *place) has(text string) {
	p.t.Helper()
	b, _ := json.Marshal(text)
	p.until(`document.readyState === "complete" && document.body.innerText.includes(` + string(b) + `)`)
}

// click clicks the first visible link or button with a text.
func (p *place) click(text string) {
	p.t.Helper()
	b, _ := json.Marshal(text)
	find := `[...document.querySelectorAll("a, button, summary, label")].find((e) => e.innerText.includes(` + string(b) + `) && e.getClientRects().length > 0)`
	p.until(find)
	_, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("[data-hit]").forEach((e) => e.removeAttribute("data-hit")); `+find+`.setAttribute("data-hit", "")`))
	require.NoError(p.t, err)
	p.clicks++
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(`[data-hit]`))))
}

func (p *place) press(keys string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
}

// focusOn presses a key until the entry with a text has the focus.
func (p *place) focusOn(key, text string) {
	p.t.Helper()
	b, _ := json.Marshal(text)
	p.until(`document.readyState === "complete"`) // the script has the keys
	for range 100 {
		p.press(key)
		at, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.activeElement !== document.body && document.activeElement.innerText.includes(`+string(b)+`)`))
		require.NoError(p.t, err)
		if at {
			return
		}
	}
	require.Fail(p.t, "no entry with this text gets the focus", text)
}

// themes calls fn in the light and in the dark theme.
func (p *place) themes(fn func(theme string)) {
	for _, theme := range []string{"light", "dark"} {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		require.NoError(p.t, err)
		fn(theme)
	}
}

// focused returns an attribute of the element that has the focus.
func (p *place) focused(attribute string) string {
	p.t.Helper()
	b, _ := json.Marshal(attribute)
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.activeElement.getAttribute(`+string(b)+`) || ""`))
	require.NoError(p.t, err)
	return text
}
