package agentclients_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/stretchr/testify/require"
)

type (
	turn     = fakemodel.Turn
	exchange = fakemodel.Exchange
)

var update = flag.Bool("update", false, "write the samples")

// scenario is one session with the recording hook. What it shows is a file of
// testdata/agentclients.
type scenario struct {
	name string
	// racy: the events come in no fixed order, so that only which there were is
	// held against the sample.
	racy    bool
	hook    agentclients.Hook
	answers []agentclients.Answer
	// prompts returns what happens in a workspace.
	prompts func(dir string) []agentclients.Prompt
	helpers func(dir string) []agentclients.Prompt
	// setUp changes the session before it runs, if set.
	setUp func(t *testing.T, s *agentclients.Session)
}

// sample is what a scenario shows.
type sample struct {
	Client string `json:"client"`
	// Calls are the calls of the model, with the answers that it received.
	Calls []sampleCall `json:"calls"`
	// Events are what the hook read, in order.
	Events []json.RawMessage `json:"events"`
	// Context reports whether the model received the text that the hook added.
	Context bool `json:"context,omitempty"`
	// Files are the workspace afterwards, and Code the exit code.
	Files map[string]string `json:"files"`
	Code  int               `json:"code"`
}

type sampleCall struct {
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"`
	Result string          `json:"result"`
	Failed bool            `json:"failed,omitempty"`
}

// one is a single prompt with one turn for each call.
func one(calls ...fakemodel.Call) []agentclients.Prompt {
	p := agentclients.Prompt{Text: "do the work"}
	for _, c := range calls {
		p.Turns = append(p.Turns, agentclients.Turn(c))
	}
	return []agentclients.Prompt{p}
}

// play runs a scenario, and holds it against its sample.
func play(t *testing.T, c agentclients.Client, sc scenario) (agentclients.Transcript, sample) {
	t.Helper()
	s := agentclients.Session{Dir: t.TempDir(), Home: t.TempDir()}
	write(t, filepath.Join(s.Dir, "notes.txt"), "one\ntwo\nthree\n")
	r := c.Record(t, s.Home, sc.hook, sc.answers...)
	s.Prompts = sc.prompts(s.Dir)
	if sc.helpers != nil {
		s.Helpers = sc.helpers(s.Dir)
	}
	if sc.setUp != nil {
		sc.setUp(t, &s)
	}
	tr := c.Run(t, s)
	if dump := os.Getenv("AGENTCLIENTS_DUMP"); dump != "" {
		for i, q := range tr.Requests {
			write(t, filepath.Join(dump, fmt.Sprintf("%s-%s-%d.json", c.Name, sc.name, i)), q.Path+"\n"+string(q.Body))
		}
		write(t, filepath.Join(dump, c.Name+"-"+sc.name+".said"), tr.Outcomes[0].Output+tr.Stderr)
		env, err := json.MarshalIndent(r.Events(), "", " ")
		require.NoError(t, err)
		write(t, filepath.Join(dump, c.Name+"-"+sc.name+".events"), string(env))
	}
	got := sample{Client: c.Name + " " + c.Version, Files: filesIn(t, s.Dir)}
	for _, q := range tr.Requests {
		got.Context = got.Context || bytes.Contains(q.Body, []byte("the hook adds this"))
	}
	for _, o := range tr.Outcomes {
		got.Code = o.Code
		for _, e := range o.Calls {
			got.Calls = append(got.Calls, sampleCall{e.Tool, json.RawMessage(e.Args), e.Result, e.Failed})
		}
	}
	for _, e := range r.Events() {
		got.Events = append(got.Events, e.JSON)
	}
	name := filepath.Join("..", "..", "..", "testdata", "agentclients", c.Name, sc.name+".json")
	text := cleaned(t, got, s, r.Command)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		write(t, name, text)
	}
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	want := string(raw)
	if sc.racy {
		want, text = outline(t, want), outline(t, text)
	}
	if want != text {
		t.Log(tr.Stderr)
	}
	require.Equal(t, want, text)
	return tr, got
}

// outline returns which events, calls and files a sample has.
func outline(t *testing.T, text string) string {
	t.Helper()
	var s sample
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	var all []string
	for _, raw := range s.Events {
		var e map[string]any
		require.NoError(t, json.Unmarshal(raw, &e))
		all = append(all, fmt.Sprintf("event %v of %v", e["hook_event_name"], e["tool_name"]))
	}
	for _, c := range s.Calls {
		all = append(all, "call of "+c.Tool)
	}
	for name, text := range s.Files {
		all = append(all, fmt.Sprintf("file %s: %q", name, text))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func filesIn(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir+"/")] = string(text)
		return err
	}))
	return all
}

// changing are texts that differ from run to run.
var changing = []struct {
	found  *regexp.Regexp
	put    string // with the number of the value, in the order of their appearance
	client string // "": each
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "00000000-0000-4000-8000-%012d", ""},
	{regexp.MustCompile(`/tmp/agent[0-9]+`), "/tmp/run%d", ""},
	{regexp.MustCompile(`-tmp-agent[0-9]+`), "-tmp-run%d", ""},
	{regexp.MustCompile(`\bb[a-z0-9]{8}\b`), "background%d", "claude-code"}, // Claude Code's background tasks
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}.[0-9]{3}Z`), "2026-01-02T03:04:05.%03dZ", ""},
	{regexp.MustCompile(`session-20[0-9T-]{14}-[0-9a-f]{8}`), "session-2026-01-02T03-04-%08d", ""},
	{regexp.MustCompile(`\bevt_[0-9A-Za-z]+`), "evt_%d", ""},
	{regexp.MustCompile(`\bses_[0-9A-Za-z]+`), "ses_%d", ""},
	{regexp.MustCompile(`\bmsg_[0-9A-Za-z]+`), "msg_%d", ""},
	{regexp.MustCompile(`\bprt_[0-9A-Za-z]+`), "prt_%d", ""},
	{regexp.MustCompile(`"slug": "[^"]+"`), `"slug": "slug-%d"`, ""},
	{regexp.MustCompile(`Chunk ID: [0-9a-f]{6}`), "Chunk ID: %d", ""},
	{regexp.MustCompile(`sessions/20[0-9]{2}/[0-9]{2}/[0-9]{2}/rollout-[0-9T-]{19}`), "sessions/2026/01/02/rollout-2026-01-02T03-04-%02d", ""},
	{regexp.MustCompile(`\ba[0-9a-f]{16}\b`), "agent%d", ""},
}

var (
	duration  = regexp.MustCompile(`("duration_ms": |"durationSeconds": |"totalDurationMs": |<duration_ms>|\\nduration_ms: |Wall time:? |"(?:created|updated)": |PGID: |"pid": |PID: |\(PID )[0-9.e-]+`)
	sessionID = regexp.MustCompile(`("session_id": ?|session ID )[0-9]+`)
	budget    = regexp.MustCompile(`(\\n)*<system-reminder>\\n<total_tokens>[0-9]+ tokens left</total_tokens>\\n</system-reminder>`)
)

// cleaned returns a sample without what differs from run to run.
func cleaned(t *testing.T, s sample, of agentclients.Session, command string) string {
	t.Helper()
	var b bytes.Buffer
	for i, c := range s.Calls { // arguments are as the scenario has them
		s.Calls[i].Args = json.RawMessage(sessionID.ReplaceAllString(string(c.Args), "${1}1000"))
	}
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(s))
	text := strings.NewReplacer(
		"\"/root", "\"/top", // of sub-agents of Codex, whose names look like paths
		command, "/usr/bin/hook", `"`+of.Dir[1:], `"workspace`, of.Dir, "/workspace", of.Home, "/home/user",
		strings.ReplaceAll(of.Dir, "/", "-"), "-workspace",
	).Replace(b.String())
	for _, c := range changing {
		if !strings.HasPrefix(s.Client, c.client) {
			continue
		}
		seen := map[string]string{}
		text = c.found.ReplaceAllStringFunc(text, func(s string) string {
			if seen[s] == "" {
				seen[s] = fmt.Sprintf(c.put, len(seen)+1)
			}
			return seen[s]
		})
	}
	text = sessionID.ReplaceAllString(text, "${1}1000")
	text = budget.ReplaceAllString(text, "")
	return duration.ReplaceAllString(text, "${1}1")
}
