package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

func allowAll(o ...agent.Option) []agent.Option {
	return append(o, agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Revision: "1"}), nil
	})))
}

func square(c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 4))
	for i := range 32 {
		img.Set(i%8, i/8, c)
	}
	return img
}

func pngOf(t *testing.T, c color.Color) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, square(c)))
	return b.String()
}

// TestImages: the page of a difference has both versions of an image side by
// side. Their pixels come from the decoder of the console, not from the file.
func TestImages(t *testing.T) {
	p := newPlace(t, console.Options{}, allowAll()...)
	red, green := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 255, 0, 255}
	p.own("old.png", pngOf(t, red))
	p.own("new.png", pngOf(t, green)+"<script>document.title='in'</script>") // bytes behind the image
	tx, err := p.session.Begin(t.Context())
	require.NoError(t, err)
	for _, call := range []struct {
		name string
		args tool.Args
	}{{"file_delete", tool.Args{"path": "old.png"}}, {"file_copy", tool.Args{"from": "new.png", "to": "old.png"}}} {
		_, err = tx.Invoke(t.Context(), call.name, call.args)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit(t.Context()))
	page := p.page("/diff?id=" + tx.ID())
	require.Equal(t, 2, strings.Count(page, "<img "), page)
	require.Contains(t, page, "before: png, 8 × 4 pixels")
	require.Contains(t, page, "sha256:")
	for side, want := range map[string]color.Color{"before": red, "after": green} {
		w := p.do(p.get("/image?id=" + tx.ID() + "&file=0&side=" + side))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "image/png", w.Header().Get("Content-Type"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, w.Body.String(), "script")
		got, err := png.Decode(w.Body)
		require.NoError(t, err)
		require.Equal(t, color.NRGBAModel.Convert(want), color.NRGBAModel.Convert(got.At(3, 2)))
	}
	for _, bad := range []string{"", "&file=0", "&file=0&side=other", "&file=9&side=after", "&side=after", "&file=-1&side=x", "&file=0&side=after&request=sha256:0"} {
		require.GreaterOrEqual(t, p.do(p.get("/image?id="+tx.ID()+bad)).Code, 400, bad)
	}
	r := p.get("/image?id=" + tx.ID() + "&file=0&side=after")
	r.Header.Del("Cookie")
	require.Equal(t, http.StatusUnauthorized, p.do(r).Code)
	r = p.get("/image?id=" + tx.ID() + "&file=0&side=after")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, p.do(r).Code, "an image on a page of another site")
}

// bomb returns a PNG that says that it is large, and a GIF that does.
func bomb(t *testing.T) map[string]string {
	t.Helper()
	text := []byte(pngOf(t, color.White))
	copy(text[16:24], "\x00\x00\xff\xff\x00\x00\xff\xff") // width and height
	sum := crc32.ChecksumIEEE(text[12:29])
	text[29], text[30], text[31], text[32] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	return map[string]string{"bomb.png": string(text), "bomb.gif": "GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,"}
}

// TestHostileImages: what is no raster image of moderate size is described by its
// size and digest. No page shows it, and no address serves its bytes.
func TestHostileImages(t *testing.T) {
	p := newPlace(t, console.Options{}, allowAll()...)
	svg := `<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='in'"><script>document.title='in'</script></svg>`
	var moving, photo bytes.Buffer
	require.NoError(t, gif.Encode(&moving, square(color.White), nil))
	require.NoError(t, jpeg.Encode(&photo, square(color.White), nil))
	files := bomb(t)
	files["a.svg"], files["b.svg"], files["text.png"], files["x.svg.png"] = svg, svg+"\x00", "<script>1</script>", "\x89PNG\r\n\x1a\n"+svg
	files["cut.png"], files["empty.png"], files["page.gif"] = pngOf(t, color.White)[:40], "", "GIF89a/*"+svg+"*/=1;\x00"
	files["big.png"] = pngOf(t, color.White) + strings.Repeat("\x00", 5<<20)
	shown := map[string]string{`"><img src=x onerror=document.title='in'>.gif`: moving.String(), "\u202egnp.jpg": photo.String()}
	try := func(name, content string, want int) {
		p.own("from", content)
		out := p.call("file_copy", tool.Args{"from": "from", "to": name})
		require.Equal(t, tool.StatusDone, out.Status, name)
		page := p.page("/diff?id=" + out.Txn)
		checkPage(t, name, page)
		require.Equal(t, want, strings.Count(page, "<img "), name)
		w := p.do(p.get("/image?id=" + out.Txn + "&file=0&side=after"))
		require.Equal(t, want == 1, w.Code == http.StatusOK, name)
		require.NotContains(t, w.Body.String(), "document.title", name)
		if want == 0 && strings.Contains(content, "\x00") {
			require.Contains(t, page, "sha256:", name)
		}
	}
	for name, content := range files {
		want := 0
		if name == "cut.png" { // its header is whole, so the page has a place for it
			continue
		}
		try(name, content, want)
	}
	for name, content := range shown {
		try(name, content, 1)
	}
	p.own("cut", files["cut.png"])
	out := p.call("file_copy", tool.Args{"from": "cut", "to": "cut.png"})
	require.Equal(t, http.StatusNotFound, p.do(p.get("/image?id="+out.Txn+"&file=0&side=after")).Code)
}

// TestRows: a row shows its columns, and what differs in them. What is no row, or
// a row without known values, is no table.
func TestRows(t *testing.T) {
	row := func(parts ...string) diff.ResourceVersion { return diff.ResourceVersion{Type: "row", Lines: parts} }
	got, ok := console.RowsOf(diff.Delta{Before: row("id: 1", "a: b: x"), After: row("id: 1", "a: b: y")})
	require.True(t, ok)
	require.Equal(t, []string{"id", "a"}, got.Columns)
	require.Len(t, got.Rows, 2)
	require.Equal(t, "b: x", got.Rows[0].Cells[1].Text)
	require.True(t, got.Rows[0].Cells[1].Differs)
	require.False(t, got.Rows[1].Cells[0].Differs)
	for _, d := range []diff.Delta{{After: row("id: 1")}, {Before: row("id: 1")}} {
		got, ok = console.RowsOf(d)
		require.True(t, ok)
		require.Len(t, got.Rows, 1)
	}
	for name, d := range map[string]diff.Delta{
		"a large row": {Before: row("id: 1"), After: row("a row of t that is too large to be shown, version 1")}, "another table": {Before: row("id: 1"), After: row("id: 1", "n: 2")},
		"a file": {Before: diff.ResourceVersion{Type: "file"}, After: diff.ResourceVersion{Type: "file"}}, "nothing": {},
	} {
		_, ok = console.RowsOf(d)
		require.False(t, ok, name)
	}
}

// TestRequests: the difference lists what calls asked for on the network, and
// where their effects are not shown.
func TestRequests(t *testing.T) {
	post, err := tool.FromSpec(tool.Spec{
		Name: "post", Description: "Posts.", EffectClass: effect.Pivot,
		Input: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":false}`),
		Needs: []perm.ResourceAccess{{Action: perm.Connect, Resource: "https://api.example/items", Method: "POST"}},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("posted"), nil
		},
	})
	require.NoError(t, err)
	p := newPlace(t, console.Options{}, allowAll(agent.Tools(post))...)
	out := p.call("post", tool.Args{"to": "<b>ann"})
	require.Equal(t, tool.StatusDone, out.Status, fmt.Sprint(out.Error))
	for _, id := range []string{out.Call, out.Txn} {
		page := p.page("/diff?id=" + id)
		for _, want := range []string{"Requests, and effects elsewhere", "POST <code>https://api.example/items</code>", "to=&lt;b&gt;ann", "What it did outside of files is not shown"} {
			require.Contains(t, page, want)
		}
	}
}
