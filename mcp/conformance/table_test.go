package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const suiteOutput = `Running client scenario 'a'
✓ not of the summary
=== SUMMARY ===
✓ ping: 2 passed, 0 failed
✗ tools_call: 1 passed, 1 failed
✗ auth/basic: 0 passed, 2 failed
✓ tasks-x: 3 passed, 0 failed, 1 warnings

Total: 6 passed, 3 failed

Not scored for 2026-07-28: 2 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ auth/basic (extension)
  ✓ tasks-x (added-after-release)
`

// TestRead: the summary is taken apart, and one that says nothing is an error.
func TestRead(t *testing.T) {
	r, err := read(strings.NewReader(suiteOutput))
	require.NoError(t, err)
	require.Equal(t, []scenario{
		{name: "ping", good: true, passed: 2},
		{name: "tools_call", passed: 1, failed: 1},
		{name: "auth/basic", uncounted: "extension", failed: 2},
		{name: "tasks-x", uncounted: "added-after-release", good: true, passed: 3},
	}, r.scenarios)
	_, err = read(strings.NewReader("crashed\n"))
	require.ErrorContains(t, err, "said nothing")
	_, err = read(strings.NewReader("✓ ping: 1 passed, 0 failed\n  ✗ other (extension)\n"))
	require.ErrorContains(t, err, "is not there")
}

// TestBad: all has to pass, also what does not count for the suite, but for what stands apart, which must not.
func TestBad(t *testing.T) {
	r, err := read(strings.NewReader(suiteOutput))
	require.NoError(t, err)
	require.True(t, r.bad())
	require.False(t, r.clean())
	r.apart = []exception{{"tools_call", "no tools"}}
	require.Equal(t, []string{"auth/basic"}, r.failures())
	r.apart = append(r.apart, exception{"auth/basic", "no secrets"})
	require.False(t, r.bad())
	r.apart = append(r.apart, exception{"ping", "no ping"})
	require.True(t, r.bad(), "it passes, and should not be on the list any more")
	require.Equal(t, []string{"ping"}, r.failures())
	require.True(t, report{failed: true}.bad())
}

// TestTable: a run that did not take place does not look like one that passed.
func TestTable(t *testing.T) {
	r, err := read(strings.NewReader(suiteOutput))
	require.NoError(t, err)
	r.suiteRun, r.part, r.took = suiteRun{"1", "server", "new"}, "server", 61*time.Second
	apart := r
	apart.apart = []exception{{"tools_call", "no tools"}, {"auth/basic", "no secrets"}, {"old", "not of this revision"}}
	all := []report{r, apart, {part: "client", failed: true}}
	require.Equal(t, `| what | suite | revision | count | checks | others | not passed | took |
| --- | --- | --- | ---: | ---: | ---: | --- | ---: |
| server | 1 | new | 1 of 2 | 3 | 1 of 2 | **tools_call**, **auth/basic** | 1m1s |
| server | 1 | new | 1 of 2 | 3 | 1 of 2 | tools_call (1), auth/basic (2) | 1m1s |
| client | | | DID NOT RUN | | | | |
`, table(all))
	require.Equal(t, "\n(1) counts, and does not pass, because\n\n- no tools: tools_call\n"+
		"\n(2) does not count for the suite, and does not pass, because\n\n- no secrets: auth/basic\n", reasons(all))
	require.Empty(t, reasons([]report{r}))
}

// TestExplain: what was wrong is said by check, of each scenario that did not pass.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"server-tools_call-2026-11-22T04": `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"two\nlines"}]`,
		"auth/basic-2026-11-22T04":        `[{"id":"c","status":"FAILURE","errorMessage":"no"}]`,
		"server-ping-2026-11-22T04":       `[{"id":"d","status":"FAILURE","errorMessage":"not asked for"}]`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "checks.json"), []byte(text), 0o600))
	}
	r, err := read(strings.NewReader(suiteOutput))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, explain(dir, r, &out))
	require.Equal(t, "  tools_call: b: two lines\n  auth/basic: c: no\n", out.String())
}

// TestRename: the suite's names become the gateway's on the way in, and are themselves again on the way out.
func TestRename(t *testing.T) {
	require.JSONEq(t, `{"method":"tools/call","params":{"name":"up__x","arguments":{"name":"y"}}}`, string(rename([]byte(`{"method":"tools/call","params":{"name":"x","arguments":{"name":"y"}}}`))))
	require.JSONEq(t, `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"up__x"},"argument":{"name":"y","value":""}}}`,
		string(rename([]byte(`{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"y","value":""}}}`))))
	for _, other := range []string{`{"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"x"}}}`, `{"method":"tools/list","params":{"name":"x"}}`, `{"method":"tools/call","params":{}}`, `[]`, `no`} {
		require.Nil(t, rename([]byte(other)))
	}
}

// TestRun: a part that is not there is wrong usage.
func TestRun(t *testing.T) {
	var log bytes.Buffer
	require.Equal(t, 2, run(t.Context(), &log, &log, []string{"nonsense"}))
	require.Contains(t, log.String(), "gateway-url")
	t.Setenv("PATH", "")
	log.Reset()
	require.Equal(t, 1, run(t.Context(), &log, &log, []string{"server"}))
	require.Contains(t, log.String(), "DID NOT RUN: there is no npm here")
}

// TestFixtures: every fixture is a tool, and what is offered is one of them.
func TestFixtures(t *testing.T) {
	_, stop, err := startServer(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.NoError(t, stop())
	url, ok := asClient([]string{driving, "http://x"})
	require.True(t, ok)
	require.Equal(t, "http://x", url)
	_, ok = asClient([]string{"server"})
	require.False(t, ok)
}
