package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// noPerson is a process without a terminal.
func noPerson() cli.Caller { return cli.Caller{Terminal: errors.New("there is no terminal")} }

// onSecondNode returns a node with rules of its own on the journal of p.
func onSecondNode(t *testing.T, p targetPlace, journal, rules string) (at func(args ...string) []string) {
	t.Helper()
	workspace, state := filepath.Join(p.dir, "second"), filepath.Join(p.dir, "second.st")
	require.NoError(t, os.Mkdir(workspace, 0o700))
	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "approval.json"), []byte(rules), 0o600))
	script := filepath.Join(p.dir, "list.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_list","args":{}}`), 0o600))
	code, out, errs := p.run(personHere, "run", "--journal", journal, "--workspace", workspace, "--state", state, script)
	require.Zero(t, code, out+errs)
	return func(args ...string) []string { return append(args, "--journal", journal, "--state", state) }
}

// TestRulesOfTheNodeThatAsked: the rules for an approval are those of the node
// whose call waits, and not those of the folder that an approver names.
func TestRulesOfTheNodeThatAsked(t *testing.T) {
	journal, _ := pgtest.Database(t)
	p := newTarget(t, "--journal", journal)
	second := onSecondNode(t, p, journal, `{"unattended":true}`)
	code, out, errs := p.run(noPerson, second("approve", p.call)...)
	require.Equal(t, int(cli.ExitDenied), code, out+errs)
	require.Regexp(t, `a person runs on node n_[a-z2-7]{16}, whose rules count: remit approval allow-unattended`, errs)
	_, out, _ = p.run(noPerson, second("pending", p.call, "--json")...)
	require.Contains(t, out, `"state":"waits"`)

	// A passphrase of the node that asked counts everywhere.
	const phrase = "correct horse battery"
	first := func(args ...string) []string { return p.at(append(args, "--journal", journal)...) }
	code, out, errs = p.runAs(typing(phrase), first("approval", "set-passphrase")...)
	require.Zero(t, code, out+errs)
	for _, typed := range []string{"another phrase", ""} {
		code, out, errs = p.runAs(typing(typed), second("approve", p.call)...)
		require.Equal(t, int(cli.ExitDenied), code, out+errs)
	}
	code, out, errs = p.runAs(typing(phrase), second("approve", p.call)...)
	require.Zero(t, code, out+errs)

	// So does the permission to approve from anywhere.
	code, out, errs = p.runAs(typing(phrase), first("approval", "remove-passphrase")...)
	require.Zero(t, code, out+errs)
	call := p.ask(t, "b.txt", "--journal", journal)
	code, out, errs = p.run(noPerson, second("approve", call)...)
	require.Equal(t, int(cli.ExitDenied), code, out+errs)
	code, out, errs = p.run(personHere, first("approval", "allow-unattended")...)
	require.Zero(t, code, out+errs)
	code, out, errs = p.run(noPerson, second("approve", call)...)
	require.Zero(t, code, out+errs)

	// A node that announced nothing, or what cannot be read, has the strictest rules.
	call = p.ask(t, "c.txt", "--journal", journal)
	for rules, want := range map[string]cli.ExitCode{"NULL": cli.ExitDenied, `'{"passphrase":{}}'`: cli.ExitUsage} {
		pgtest.Exec(t, journal, "UPDATE remit.nodes SET approval = "+rules)
		code, out, errs = p.run(noPerson, second("approve", call)...)
		require.Equal(t, int(want), code, rules+out+errs)
	}
}

// TestRulesOfWaitingCommits: they are those of the node whose transaction it is.
func TestRulesOfWaitingCommits(t *testing.T) {
	journal, _ := pgtest.Database(t)
	p := newTarget(t, "--journal", journal)
	second := onSecondNode(t, p, journal, `{"unattended":true}`)
	require.NoError(t, os.WriteFile(p.policy, []byte("package remit\nallow contains \"all\" if true\nask_commit contains \"look\" if true\n"), 0o600))
	script := filepath.Join(p.dir, "s.jsonl")
	code, out, errs := p.run(personHere, p.at("run", "--json", "--journal", journal, "--policy", p.policy, script)...)
	require.Equal(t, int(cli.ExitPending), code, out+errs)
	txn, request := regexp.MustCompile(`t_[0-9a-z]{12}`).FindString(out), regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	_, out, _ = p.run(personHere, second("pending", txn, "--json")...)
	digest := regexp.MustCompile(`"question":"(` + request.String() + `)"`).FindStringSubmatch(out)
	require.Len(t, digest, 2, out)
	code, out, errs = p.run(noPerson, second("approve", txn, "--request", digest[1])...)
	require.Equal(t, int(cli.ExitDenied), code, out+errs)
	code, out, errs = p.run(personHere, second("approve", txn, "--request", digest[1])...)
	require.Zero(t, code, out+errs)
}
