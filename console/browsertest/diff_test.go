package browsertest

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const openRules = `package remit

allow contains "files and rows may change" if input.access.action in {"read", "write", "delete", "list", "call"}
`

// own writes a file of the workspace as the person.
func (p *place) own(name string, text []byte) {
	require.NoError(p.t, os.WriteFile(filepath.Join(p.workspace, name), text, 0o600))
}

func picture(t *testing.T, c color.Color) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 16, 8))
	for i := range 128 {
		img.Set(i%16, i/16, c)
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

// differences changes an image, rows of a database and an SVG in one transaction
// each, and returns the pages of their differences.
func (p *place) differences() (pages []string) {
	p.put("rules.rego", openRules)
	db, err := os.ReadFile(filepath.Join("testdata", "notes.db"))
	require.NoError(p.t, err)
	p.put("notes.db", string(db))
	p.own("old.png", picture(p.t, color.NRGBA{200, 0, 0, 255}))
	p.own("new.png", picture(p.t, color.NRGBA{0, 200, 0, 255}))
	p.own("in.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='in'"><script>document.title='in'</script></svg>`+"\x00"))
	p.run(`{"tool":"file_delete","args":{"path":"old.png"}}`, `{"tool":"file_copy","args":{"from":"new.png","to":"old.png"}}`)
	p.run(`{"tool":"sql_execute","args":{"database":"main","sql":"UPDATE notes SET text = 'other' WHERE id = 1"}}`, `{"tool":"sql_execute","args":{"database":"main","sql":"INSERT INTO notes VALUES (3, '<b>three')"}}`)
	p.run(`{"tool":"file_copy","args":{"from":"in.svg","to":"out.svg"}}`)
	out, err := p.command("log", "--workspace", "ws", "--json").Output()
	require.NoError(p.t, err)
	seen := map[string]bool{}
	for _, line := range bytes.Split(out, []byte("\n")) {
		var txn struct{ Txn string }
		if json.Unmarshal(line, &txn) == nil && txn.Txn != "" && !seen[txn.Txn] {
			seen[txn.Txn] = true
			pages = append(pages, "/diff?id="+txn.Txn)
		}
	}
	require.GreaterOrEqual(p.t, len(pages), 3, string(out))
	return pages
}

// TestDifferencesInBrowser: the browser draws images under the content security
// policy, shows rows as a table, and no SVG. A person without a mouse gets there.
func TestDifferencesInBrowser(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.differences()
	p.open()
	look := func(call string) {
		p.press("n")
		p.heading("Now")
		p.until(`document.readyState === "complete"`)
		p.focusOn("j", call)
		p.press(kb.Enter)
		p.heading("Call of")
		p.until(`document.readyState === "complete"`)
		p.press("d")
		p.heading("Difference")
	}
	look("out.svg")
	p.has("sha256:")
	p.until(`document.querySelectorAll("main img, main svg").length === 0 && document.title !== "in"`)
	look("INSERT INTO notes")
	p.until(`[...document.querySelectorAll("tr.add td")].some((e) => e.textContent.includes("<b>three"))`)

	look("from=new.png")
	p.until(`[...document.querySelectorAll("main img")].some((e) => e.complete && e.naturalWidth === 16)`)
	p.focusOn("j", "old.png")
	p.press(kb.Enter)
	p.until(`!document.querySelector("details.file").open`)
	p.press(kb.Enter)
	p.until(`document.querySelector("details.file").open`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Reload()))
	p.until(`[...document.querySelectorAll("main img")].some((e) => e.complete && e.naturalWidth === 16)`)
}
