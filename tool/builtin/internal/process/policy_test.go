package process_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// TestPolicySeesTheScript: a rule reads what a script would run, the command line of a
// program, and each change after it ran.
func TestPolicySeesTheScript(t *testing.T) {
	engine, err := rego.Load(rego.Source{FS: fstest.MapFS{"own.rego": {Data: []byte(`package remit

allow contains "fine" if input.purpose in {"run", "apply", "list"}

deny contains "no curl" if {
	some c in input.call.script.commands
	c.program == "curl"
}

deny contains "nothing is written outside of out" if {
	some r in input.call.script.redirects
	r.op != "<"
	r.path != "out"
}

deny contains "no force" if "--force" in input.access.resource.argv

deny contains "one file at a time" if {
	input.purpose == "apply"
	count(input.changes) > 1
}
`)}}})
	require.NoError(t, err)
	w := newProgramSetup(t, agent.Policy(engine))
	for script, why := range map[string]string{
		"ls > out":                    "",
		"echo a; curl example.com":    "no curl",
		"echo a > elsewhere":          "nothing is written outside of out",
		"echo a >& elsewhere; ls < a": "nothing is written outside of out",
		"echo a &>> elsewhere":        "nothing is written outside of out",
		"touch a b":                   "one file at a time",
		"sh -c 'echo; curl x' > out":  "no curl",
	} {
		_, o, err := w.invoke(t, script)
		if why == "" {
			require.NoError(t, err, script)
			continue
		}
		require.ErrorIs(t, err, tool.ErrDenied, script)
		require.Contains(t, o.Error.Why, why, script)
	}
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "process_run", tool.Args{"argv": []string{"git", "push", "--force"}})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, o.Error.Why, "no force")
}
