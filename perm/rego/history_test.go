package rego_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/pastcall"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func loadHistory(t *testing.T, rules string, tests ...string) (*rego.Engine, error) {
	t.Helper()
	files := fstest.MapFS{"p.rego": {Data: []byte("package remit\n\nimport data.remit.lib\n\n" + rules + "\n")}}
	if len(tests) > 0 {
		files["p_test.rego"] = &fstest.MapFile{Data: []byte("package remit_test\n\nimport data.remit\nimport data.remit.lib\n\n" + strings.Join(tests, "\n\n") + "\n")}
	}
	return rego.Load(rego.Source{FS: files})
}

const sendAfterReview = `allow contains "reviewed" if {
	input.tool.name == "send"
	lib.before({"tool": "edit_*"}, {"tool": "review", "outcome": "done"})
	not lib.happened({"resource": "file://ws/secret/**"})
	lib.count({"tool": "send"}, "10m") < 2
}`

func past(tool, outcome string, at time.Time, resources ...string) history.Call {
	return history.Call{Tool: tool, Outcome: outcome, Effect: "pure", Resources: append([]string{}, resources...), At: at}
}

func TestHistoryOfRequest(t *testing.T) {
	e, err := loadHistory(t, sendAfterReview)
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	edit, review := past("edit_file", "done", ago(time.Hour)), past("review", "done", ago(time.Minute))
	sent := past("send", "done", ago(time.Second))
	for name, c := range map[string]struct {
		calls []history.Call
		want  perm.Effect
	}{
		"reviewed":              {[]history.Call{edit, review}, perm.Allow},
		"edited after":          {[]history.Call{edit, review, edit}, perm.Deny},
		"review failed":         {[]history.Call{edit, past("review", "failed", now)}, perm.Deny},
		"nothing":               {[]history.Call{}, perm.Deny},
		"secret read":           {[]history.Call{past("file_read", "unknown", now, "file://ws/secret/a"), edit, review}, perm.Deny},
		"secret read denied":    {[]history.Call{past("file_read", "denied", now, "file://ws/secret/a"), edit, review}, perm.Allow},
		"other file":            {[]history.Call{past("file_read", "done", now, "file://ws/a"), edit, review}, perm.Allow},
		"sent once":             {[]history.Call{edit, review, sent}, perm.Allow},
		"sent twice":            {[]history.Call{edit, review, sent, sent}, perm.Deny},
		"sent twice, long ago":  {[]history.Call{past("send", "done", ago(10*time.Minute)), edit, review, sent}, perm.Allow},
		"erased can be a match": {[]history.Call{{Tool: "file_read", Outcome: "done"}, edit, review}, perm.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			r := perm.Request{Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "send"}, Time: now}
			for _, s := range []perm.SessionFacts{{History: c.calls}, {Past: pastcall.List(c.calls)}} { // a list, and a source
				r.Session = s
				d, err := e.Decide(context.Background(), r)
				require.Equal(t, c.want, d.Effect(), d.Reasons())
				if strings.HasPrefix(name, "erased") {
					require.ErrorContains(t, err, "whose record was erased")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
	// A history that nobody knows must not count as an empty one.
	d, err := e.Decide(context.Background(), perm.Request{Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "send"}, Time: now})
	require.ErrorContains(t, err, "builtin:lib/lib.rego:")
	require.ErrorContains(t, err, "the earlier calls of the session are unknown")
	require.Equal(t, perm.Deny, d.Effect())
	// A rule that does not need it is decided.
	d, err = e.Decide(context.Background(), perm.Request{Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "other"}, Time: now})
	require.NoError(t, err)
	require.Equal(t, perm.Deny, d.Effect())
}

func TestHistoryInTests(t *testing.T) {
	e, err := loadHistory(t, sendAfterReview,
		`reviewed := [{"tool": "edit_file", "outcome": "done", "resources": []}, {"tool": "review", "outcome": "done", "resources": []}]`,
		`test_reviewed if remit.allow with input as {"tool": {"name": "send"}, "time": "2026-01-02T03:04:05Z", "session": {"history": reviewed}}`,
		`test_not_reviewed if count(remit.allow) == 0 with input as {"tool": {"name": "send"}, "time": "2026-01-02T03:04:05Z", "session": {"history": []}}`,
		`test_without_history if count(remit.allow) == 0 with input as {"tool": {"name": "send"}, "time": "2026-01-02T03:04:05Z"}`,
	)
	require.NoError(t, err)
	report, err := e.Test(context.Background())
	require.NoError(t, err)
	status := map[string]string{}
	for _, r := range report.Results {
		status[r.Name[strings.LastIndex(r.Name, ".")+1:]] = r.Status
	}
	require.Equal(t, map[string]string{"test_reviewed": "pass", "test_not_reviewed": "pass", "test_without_history": "error"}, status, report)
}

func TestHistoryChecked(t *testing.T) {
	for rule, want := range map[string]string{
		`lib.happened({"tool": "a", "state": "done"})`:              "has no member state",
		`lib.happened({"outcome": "ok"})`:                           "outcome of the pattern: must be one of",
		`lib.happened({"effect": "read"})`:                          "effect of the pattern: must be one of",
		`lib.happened({"resource": "/tmp"})`:                        "resource of the pattern",
		`lib.happened({"resource": "file://ws/{path}"})`:            "must not have parameters",
		`lib.happened({"tool": ""})`:                                "tool of the pattern is empty",
		`lib.happened("a")`:                                         "a pattern of calls must be an object",
		`lib.before({"tool": "a"}, {"kind": "b"})`:                  "has no member kind",
		`lib.count({"tool": "a"}, "day") > 1`:                       "a window must be a duration",
		`lib.count({"tool": "a"}, "0") > 1`:                         "from 1 to 10000",
		`lib.count({"tool": "a"}, "-1h") > 1`:                       "a window must be a duration",
		`lib.count({"tool": "a"}, 10) > 1`:                          "a window must be a text",
		`some call in input.session.history; call.tool == "a"`:      "is a list only in tests",
		`p := {"tool": "a", "outcome": "never"}; lib.happened(p)`:   "outcome of the pattern",
		`lib.sum({"tool": "a"}, "amount", "24h") > 1`:               "must be a JSON pointer",
		`lib.sum({"tool": "a"}, "/a~2", "24h") > 1`:                 "must be a JSON pointer",
		`lib.sum({"tool": "a"}, 1, "24h") > 1`:                      "must be a JSON pointer",
		`lib.sum_with({"tools": "a"}, "/amount", "") > 1`:           "has no member tools",
		`lib.sum_with({"tool": "a"}, "/amount", "1d") > 1`:          "a window must be a duration",
		`lib.sum({"tool": "a"}, "/a~1b/0", "20") > 1`:               "",
		`lib.happened({"resource": input.access.resource.text})`:    "",
		`lib.count({"tool": input.tool.name}, "20") > 1`:            "",
		`lib.happened({})`:                                          "",
		`lib.before({"effect": "pivot"}, {"resource": "db://m/t"})`: "",
	} {
		_, err := loadHistory(t, `deny contains "x" if { `+rule+` }`)
		if want == "" {
			require.NoError(t, err, rule)
			continue
		}
		require.ErrorContains(t, err, want, rule)
		require.ErrorContains(t, err, "p.rego:5", rule)
	}
}
