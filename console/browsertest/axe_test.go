package browsertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const axeVersion = "4.14.1"

// axe returns the source of axe-core, from npm, once for the user.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "remit-axe", axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		npm, err := exec.LookPath("npm")
		if err != nil {
			t.Skip("needs npm for axe-core")
		}
		require.NoError(t, os.MkdirAll(dir, 0o755))
		out, err := exec.Command(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", dir, "axe-core@"+axeVersion).CombinedOutput()
		if err != nil {
			t.Skipf("needs axe-core from npm: %v\n%s", err, out)
		}
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// TestAccessible: axe-core finds nothing on any page, in both themes and in a
// narrow window.
func TestAccessible(t *testing.T) {
	proves(t)
	source := axe(t)
	p := newPlace(t)
	p.run(write("notes.txt", "one\ntwo\nthree\n"), write("notes-other.txt", "two\n"))
	p.run(write("notes.txt", "one\n2\nthree\n"))
	p.run(`{"tool":"file_delete","args":{"path":"notes.txt"}}`)
	p.run(write("secret.txt", "asked\n"))
	p.put("rules.rego", commitRules)
	p.run(write("kept.txt", "one\n"))
	shown := p.differences()
	p.attended()
	p.open()
	p.press("h")
	p.heading("Health")
	p.click("Check the machine")
	p.has("Check again")
	pages := append(p.pages(), shown...)
	checked := 0
	for _, width := range []int64{1280, 400} {
		require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 900)))
		p.themes(func(theme string) {
			for _, path := range pages {
				p.visit(p.address + path)
				p.until(`document.readyState === "complete"`)
				_, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](source))
				require.NoError(t, err)
				found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`axe.run(document).then((r) => r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => n.html + "\n" + n.failureSummary).join("\n")))`, chromedp.EvalAwaitPromise))
				require.NoError(t, err)
				require.Empty(t, found, "%s, %s, %d pixels: %s", path, theme, width, strings.Join(found, "\n"))
				wide, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`))
				require.NoError(t, err)
				require.False(t, wide, "%s is wider than %d pixels", path, width)
				checked++
			}
		})
	}
	t.Logf("proved: axe-core %s on the console in two themes and two widths: %d pages, 0 violations", axeVersion, checked)
}

// pages returns the addresses of a page of each kind.
func (p *place) pages() []string {
	p.visit(p.address + "/timeline")
	p.heading("Timeline")
	links, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`[...new Set([...document.querySelectorAll("main a")].map((a) => a.getAttribute("href")))]`))
	require.NoError(p.t, err)
	all := []string{"/", "/sessions", "/policy", "/grants", "/health", "/timeline", "/nosuch", "/enter"}
	kinds := map[string]int{}
	for _, l := range links {
		kind, _, _ := strings.Cut(l, "?")
		if kinds[kind]++; kinds[kind] <= 3 && strings.HasPrefix(l, "/") {
			all = append(all, l)
		}
	}
	for _, l := range all {
		if id, is := strings.CutPrefix(l, "/call?"); is {
			all = append(all, "/why?"+id)
			break
		}
	}
	require.GreaterOrEqual(p.t, len(all), 14)
	return all
}
