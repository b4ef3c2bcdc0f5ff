package urlscan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/urlscan"
)

// platform returns the absolute URLs from the list of web-platform-tests.
func platform(t *testing.T) (cases []struct{ Input, Href string }) {
	text, err := os.ReadFile("testdata/urltestdata.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	require.Greater(t, len(cases), 400)
	return cases
}

// TestPlatform checks that a URL of browsers is parsed as that URL, and that
// Find returns it if it leads out of the machine.
func TestPlatform(t *testing.T) {
	for _, tt := range platform(t) {
		got, _ := urlscan.Href(tt.Input)
		require.Equal(t, tt.Href, got, "%q", tt.Input)
		if canonical, leads := urlscan.Canonical(tt.Href); tt.Href != "" && leads {
			m := urlscan.Find(tt.Input)
			require.Len(t, m, 1, "%q", tt.Input)
			require.Equal(t, canonical, m[0].Text, "%q", tt.Input)
		}
	}
}

// TestBrowser compares the parsing of random URLs with the parser of Node,
// which follows the same standard.
func TestBrowser(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("this machine has no node, whose parser is the other one")
	}
	piece := rapid.SampledFrom([]string{
		"http", "https", "ws", "wss", "ftp", "file", "HtTp", "mailto", "x", ":", ":", ":", "/", "/", "//", "\\", "\\\\", "@", "?", "#", ".", "..", "%2e", "%", "%zz", "%41", "%00",
		"a", "B", "evil.example", "xn--mgba", "faß.example", "ＧＯ.example", "日本", "0x7f.1", "127.1", "256", "[::1]", "[::ffff:1.2.3.4]", "[", "]", ":80", ":443", ":0", ":99999", "\t", "\n", "\r", " ", "\x00", "\x1f",
		"|", "^", "`", "{", "}", "'", "\"", "<", ">", "ä", "😀", "&", "=", "+", ";", ",", "~", "\u00ad", "\u200d", "\u3002", "C|", "user:pw",
	})
	var inputs []string
	for seed := range 4000 {
		inputs = append(inputs, rapid.Custom(func(t *rapid.T) string {
			text := ""
			for _, p := range rapid.SliceOfN(piece, 1, 9).Draw(t, "pieces") {
				text += p
			}
			if rapid.Bool().Draw(t, "leads") {
				text = rapid.SampledFrom([]string{"http:", "https:/", "https://", "ws:\\\\", "http://u@"}).Draw(t, "start") + text
			}
			return text
		}).Example(seed))
	}
	in, err := json.Marshal(inputs)
	require.NoError(t, err)
	cmd := exec.Command(node, "-e", `const all = JSON.parse(require("fs").readFileSync(0)); console.log(JSON.stringify(all.map(s => { try { return new URL(s).href } catch { return "" } })))`)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	require.NoError(t, err)
	var hrefs []string
	require.NoError(t, json.Unmarshal(out, &hrefs))
	require.Len(t, hrefs, len(inputs))
	read, missed := 0, 0
	for i, input := range inputs {
		want, leads := urlscan.Canonical(hrefs[i])
		if !leads {
			continue
		}
		read++
		m := urlscan.Find(input)
		require.NotEmpty(t, m, "%q is %s", input, hrefs[i])
		if len(m) != 1 || m[0].Text != want {
			missed++
			t.Logf("%q is %s, and not %v", input, want, m)
			require.Empty(t, m[0].Forms, "%q is %s: it may count as not given, and not as another URL", input, want)
		}
	}
	t.Logf("%d of %d lead out, %d of them are told in another form", read, len(inputs), missed)
	require.Greater(t, read, 500)
}
